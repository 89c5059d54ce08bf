//! What a run will hold in memory, worked out before anything large is allocated.

use super::Effective;
use crate::kernel::{KernelName, Samples};
use crate::linalg::{Points, Scalar};
use crate::ranks::Shares;
use crate::solve::exact::Exact;
use crate::solve::{Method, Plan, rank_for};
use crate::system::{Cross, Format, Keep, Store};
use crate::{Error, Result};

/// What will be kept in memory, worked out before anything large is allocated.
pub(super) struct MemoryPlan {
    pub(super) bytes: u64,
    /// Whether Ω(validation rows, training rows) and Ω(test rows, ...) are kept.
    pub(super) stored: [bool; 2],
    pub(super) follow_every: usize,
    /// How Ω of the training rows is kept, if it is.
    pub(super) kernel: Option<Format>,
    /// Rank of the preconditioner, if there is too little memory for the usual one.
    pub(super) rank: Option<usize>,
}

/// Whether Ω of the training rows may be kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// No: its values are computed when they are needed.
    Recomputed,
    /// If it fits beside all else.
    IfItFits,
    /// In half precision if it does not fit otherwise.
    AsItFits,
}

/// What the program itself takes, buffers of a reader that may still be held,
/// and tiles of each thread.
pub(super) const BASE_BYTES: u64 = 100_000_000;

/// If following needs kernel values that are not in memory, it is done so seldom, unless
/// the user chose otherwise, that it takes about this share of the time.
const FOLLOWING_SHARE: f64 = 0.15;

/// What a product with Ω in memory costs, as a share of computing it.
const PRODUCT_SHARE: f64 = 0.06;

/// Bytes for each column of sparse rows, which may be far more than their values: what steps
/// learn of it, directions in which rows differ, and where a thread finds it.
const COLUMN_BYTES: u64 = 64;

/// What sparse rows of so many columns need beside their values.
pub(super) fn bytes_of_columns(cols: usize) -> u64 {
    COLUMN_BYTES.saturating_mul(cols as u64)
}

/// Rows on a rank and on all, values of a row, and outputs.
pub(super) type Sizes = ([usize; 2], usize, usize);

impl MemoryPlan {
    /// `plans`: the runs to be made one after the other, or side by side; `shares`: of the
    /// training rows, of which this rank has `train`. It is the same on all ranks.
    pub(super) fn new<T: Scalar>(
        config: &Effective,
        plans: &[Plan],
        kept: Kept,
        (shares, train): (&Shares, &Points<T>),
        [m, k]: [usize; 2],
        parts: [&Option<Points<T>>; 2],
    ) -> Result<Self> {
        let sizes = ([shares.largest(), shares.n()], m, k);
        let [n, all] = sizes.0;
        let value = size_of::<T>() as u64;
        let rows = |part: &Option<Points<T>>| part.as_ref().map_or(0, |p| p.rows());
        let held: Vec<&Points<T>> = parts.iter().copied().flatten().collect();
        let [own, held] = Samples::bytes_of(train, &held);
        let others: usize = parts.iter().map(|p| rows(p)).sum();
        let mut features = held + shares.ranks().largest(own);
        if train.is_sparse() {
            features = features.saturating_add(bytes_of_columns(train.cols()));
        }
        let data = features + value * (n as u64 + others as u64) * k as u64;
        let largest = plans
            .iter()
            .map(|plan| plan.bytes::<T>([n, all], m, k))
            .max();
        let beside = (plans.len() as u64).saturating_sub(1) * 3 * value * n as u64 * k as u64;
        let mut solver = largest.unwrap_or(0) + beside;
        let any = |method: Method| plans.iter().any(|plan| plan.method == method);
        if any(Method::Exact) && config.kernel == KernelName::Sigmoid {
            solver = solver.max(Exact::<T>::bytes(n, k, false, config.loo));
        }
        let mut bytes = BASE_BYTES + data + solver;
        if bytes > config.budget.0 {
            let of_all = match n == all {
                true => String::new(),
                false => format!(" (of {all} on all ranks)"),
            };
            return Err(Error::Memory {
                what: format!(
                    "training by {} on {n} rows{of_all} of {m} features",
                    config.method
                ),
                needed: bytes,
                available: config.budget.0,
                remedy: remedy::<T>(config, sizes, BASE_BYTES + data),
            });
        }
        // First Ω, which every step reads, then what is followed.
        let formats = match kept {
            Kept::Recomputed => &[][..],
            Kept::IfItFits => &[Format::Full],
            Kept::AsItFits => &[Format::Full, Format::Half],
        };
        let store = |format: Format| store_bytes::<T>(plans, shares, format);
        let fits = |format: &&Format| bytes + store(**format) <= config.budget.0;
        let mut kernel = formats.iter().find(fits).copied();
        let mut rank = None;
        if let ([plan], true) = (
            plans,
            kept == Kept::AsItFits && kernel != Some(Format::Full),
        ) {
            // A smaller preconditioner beside Ω in full precision is worth more than a
            // larger one beside a rounded Ω.
            let room = config.budget.0.saturating_sub(bytes - solver);
            let room = room.saturating_sub(store(Format::Full));
            if let Some(smaller) = smaller_rank::<T>(plan, sizes, room) {
                (kernel, rank) = (Some(Format::Full), Some(smaller));
                let plan = Plan { rank, ..*plan };
                bytes = bytes - solver + plan.bytes::<T>([n, all], m, k);
            }
        }
        bytes += kernel.map_or(0, store);
        // Methods that change all weights follow errors by a full product.
        let few = [Method::Mp, Method::Exact];
        let full = plans.iter().any(|plan| !few.contains(&plan.method));
        let mut stored = [false; 2];
        let mut follow_every = config.follow;
        for (stored, part) in stored.iter_mut().zip(parts) {
            let needed = Cross::<T>::stored_bytes(rows(part), n);
            if full && config.follow > 0 && needed > 0 {
                *stored = bytes + needed <= config.budget.0;
                if *stored {
                    bytes += needed;
                } else if config.follow == 1 {
                    let steps = plans.iter().map(|plan| step_values(plan, n, kernel));
                    let step = steps.fold(f64::INFINITY, f64::min);
                    let values = rows(part) as f64 * n as f64;
                    follow_every = (values / (FOLLOWING_SHARE * step)).ceil() as usize;
                }
            }
        }
        Ok(Self {
            bytes,
            stored,
            follow_every,
            kernel,
            rank,
        })
    }
}

/// What a rank keeps of Ω.
fn store_bytes<T: Scalar>(plans: &[Plan], shares: &Shares, format: Format) -> u64 {
    let all = Store::<T>::bytes(shares.n(), format);
    let ranks = shares.ranks().size() as u64;
    match (ranks, keep(plans)) {
        (1, _) => all,
        (ranks, Keep::Share) => all.div_ceil(ranks),
        (ranks, Keep::Rows) => (2 * all).div_ceil(ranks),
    }
}

/// Which tiles of Ω a rank needs for these runs.
pub(super) fn keep(plans: &[Plan]) -> Keep {
    let rows = |plan: &Plan| plan.method == Method::GaussSeidel;
    match plans.iter().any(rows) {
        true => Keep::Rows,
        false => Keep::Share,
    }
}

/// What a step costs, in kernel values computed.
fn step_values(plan: &Plan, n: usize, kept: Option<Format>) -> f64 {
    let all = n as f64 * n as f64;
    let share = if kept.is_some() { PRODUCT_SHARE } else { 1.0 };
    match plan.method {
        Method::Pcg => 0.5 * all * share,
        Method::GaussSeidel => all * share,
        // The Gram matrix costs as much again.
        _ => 2.0 * n as f64 * plan.block_size as f64,
    }
}

/// The largest rank of `pcg`, if none was asked for, that fits in so many bytes and is
/// worth having.
pub(super) fn smaller_rank<T: Scalar>(
    plan: &Plan,
    (rows, m, k): Sizes,
    room: u64,
) -> Option<usize> {
    if plan.method != Method::Pcg || plan.rank.is_some() {
        return None;
    }
    let usual = rank_for(rows[1], m);
    let fits = |rank: usize| {
        let plan = Plan {
            rank: Some(rank),
            ..*plan
        };
        plan.bytes::<T>(rows, m, k) <= room
    };
    let ranks = (1..RANK_STEPS).rev().map(|step| usual * step / RANK_STEPS);
    ranks
        .filter(|&rank| rank >= LEAST_RANK)
        .find(|&rank| fits(rank))
}

/// Tries between the usual rank of a preconditioner and none, and the least worth having.
const RANK_STEPS: usize = 16;
const LEAST_RANK: usize = 100;

/// What to change so that the run fits.
fn remedy<T: Scalar>(config: &Effective, (rows, m, k): Sizes, fixed: u64) -> String {
    let fits = |method: Method, block_size: usize| {
        let plan = Plan {
            method,
            block_size,
            ..config.plan()
        };
        fixed + plan.bytes::<T>(rows, m, k) <= config.budget.0
    };
    let method = match config.method.draws_blocks() {
        true => config.method,
        false => Method::Mp,
    };
    let sizes = (0..)
        .map(|i| (rows[1] + 1) >> i)
        .take_while(|&size| size > 0);
    match sizes.into_iter().find(|&size| fits(method, size)) {
        Some(size) => format!("use --method {method} --block-size {size}, or raise --memory"),
        None => "use fewer rows (--train-rows), or raise --memory".to_string(),
    }
}
