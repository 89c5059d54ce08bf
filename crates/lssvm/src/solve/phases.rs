//! Where the time of a run goes, and how fast each part ran.

use std::time::Instant;

use serde::{Deserialize, Serialize};

/// A part of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Choosing centres.
    Select,
    /// Values of the kernel.
    Kernel,
    /// Gram matrix of a strip.
    Gram,
    /// Cholesky factorisation.
    Factor,
    /// Products with a few columns, and solves.
    Update,
    /// Making and applying a preconditioner.
    Precondition,
    /// Products with the kernel matrix.
    Product,
    /// Following the error on other rows.
    Follow,
    /// The residual of the final weights.
    Certify,
    /// The diagonal of the inverse, for leave-one-out scores.
    LeaveOneOut,
}

impl Phase {
    /// All, in the order of a step.
    pub const ALL: [Phase; 10] = [
        Phase::Select,
        Phase::Kernel,
        Phase::Gram,
        Phase::Factor,
        Phase::Update,
        Phase::Precondition,
        Phase::Product,
        Phase::Follow,
        Phase::Certify,
        Phase::LeaveOneOut,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Select => "select",
            Phase::Kernel => "kernel",
            Phase::Gram => "gram",
            Phase::Factor => "factor",
            Phase::Update => "update",
            Phase::Precondition => "precondition",
            Phase::Product => "product",
            Phase::Follow => "follow",
            Phase::Certify => "certify",
            Phase::LeaveOneOut => "leave-one-out",
        }
    }
}

/// Seconds and floating-point operations of each phase.
#[derive(Debug, Clone, Default)]
pub struct Phases {
    seconds: [f64; Phase::ALL.len()],
    flops: [f64; Phase::ALL.len()],
}

impl Phases {
    /// Runs `f` and books its time and `flops` to a phase.
    pub fn time<R>(&mut self, phase: Phase, flops: f64, f: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = f();
        self.seconds[phase as usize] += start.elapsed().as_secs_f64();
        self.flops[phase as usize] += flops;
        result
    }

    /// Books all that another has booked.
    pub fn add(&mut self, other: &Self) {
        let seconds = self.seconds.iter_mut().zip(other.seconds);
        let flops = self.flops.iter_mut().zip(other.flops);
        seconds.chain(flops).for_each(|(a, b)| *a += b);
    }

    /// Books all that another has booked to one phase.
    pub(super) fn book(&mut self, phase: Phase, other: &Self) {
        self.seconds[phase as usize] += other.seconds();
        self.flops[phase as usize] += other.flops();
    }

    /// All numbers, for a run that is to go on.
    pub(super) fn numbers(&self) -> Vec<f64> {
        [self.seconds, self.flops].concat()
    }

    /// The phases that [`Phases::numbers`] told.
    pub(super) fn of_numbers(numbers: [f64; 2 * Phase::ALL.len()]) -> Self {
        let mut phases = Self::default();
        let (seconds, flops) = numbers.split_at(Phase::ALL.len());
        phases.seconds.copy_from_slice(seconds);
        phases.flops.copy_from_slice(flops);
        phases
    }

    /// Seconds booked so far.
    pub fn seconds(&self) -> f64 {
        self.seconds.iter().sum()
    }

    /// Operations booked so far.
    pub fn flops(&self) -> f64 {
        self.flops.iter().sum()
    }

    /// Operations booked so far to one phase.
    pub(super) fn flops_of(&self, phase: Phase) -> f64 {
        self.flops[phase as usize]
    }

    /// The phases that took any time.
    pub fn report(&self) -> Vec<PhaseReport> {
        let spent = |phase: &Phase| self.seconds[*phase as usize] > 0.0;
        let report = |phase: Phase| {
            let (seconds, flops) = (self.seconds[phase as usize], self.flops[phase as usize]);
            PhaseReport {
                phase: phase.name().to_string(),
                seconds,
                gflops: flops / seconds / 1e9,
            }
        };
        Phase::ALL.into_iter().filter(spent).map(report).collect()
    }
}

/// One phase of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseReport {
    /// Name of the phase.
    pub phase: String,
    /// Wall time.
    pub seconds: f64,
    /// 10⁹ floating-point operations a second.
    pub gflops: f64,
}
