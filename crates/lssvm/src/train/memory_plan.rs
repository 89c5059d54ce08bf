//! What a run will hold in memory, worked out before anything large is allocated.

use super::Effective;
use crate::kernel::KernelName;
use crate::linalg::{Points, Scalar};
use crate::solve::exact::Exact;
use crate::solve::{Method, Plan, rank_for};
use crate::system::{Cross, Format, Store};
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

impl MemoryPlan {
    /// `plans`: the runs to be made one after the other, or side by side.
    pub(super) fn new<T: Scalar>(
        config: &Effective,
        plans: &[Plan],
        kept: Kept,
        [n, m, k]: [usize; 3],
        train: &Points<T>,
        parts: [&Option<Points<T>>; 2],
    ) -> Result<Self> {
        let value = size_of::<T>() as u64;
        let rows = |part: &Option<Points<T>>| part.as_ref().map_or(0, |p| p.rows());
        let others: usize = parts.iter().map(|p| rows(p)).sum();
        let all = parts.iter().copied().flatten().chain([train]);
        let mut features: u64 = all.map(Points::bytes).sum();
        if train.is_sparse() {
            features = features.saturating_add(bytes_of_columns(train.cols()));
        }
        let data = features + value * (n as u64 + others as u64) * k as u64;
        let largest = plans.iter().map(|plan| plan.bytes::<T>(n, m, k)).max();
        let beside = (plans.len() as u64).saturating_sub(1) * 3 * value * n as u64 * k as u64;
        let mut solver = largest.unwrap_or(0) + beside;
        let any = |method: Method| plans.iter().any(|plan| plan.method == method);
        if any(Method::Exact) && config.kernel == KernelName::Sigmoid {
            solver = solver.max(Exact::<T>::bytes(n, k, false, config.loo));
        }
        let mut bytes = BASE_BYTES + data + solver;
        if bytes > config.budget.0 {
            return Err(Error::Memory {
                what: format!("training by {} on {n} rows of {m} features", config.method),
                needed: bytes,
                available: config.budget.0,
                remedy: remedy::<T>(config, n, m, k, BASE_BYTES + data),
            });
        }
        // First Ω, which every step reads, then what is followed.
        let formats = match kept {
            Kept::Recomputed => &[][..],
            Kept::IfItFits => &[Format::Full],
            Kept::AsItFits => &[Format::Full, Format::Half],
        };
        let fits = |format: &&Format| bytes + Store::<T>::bytes(n, **format) <= config.budget.0;
        let mut kernel = formats.iter().find(fits).copied();
        let mut rank = None;
        if let ([plan], true) = (
            plans,
            kept == Kept::AsItFits && kernel != Some(Format::Full),
        ) {
            // A smaller preconditioner beside Ω in full precision is worth more than a
            // larger one beside a rounded Ω.
            let room = config.budget.0.saturating_sub(bytes - solver);
            let room = room.saturating_sub(Store::<T>::bytes(n, Format::Full));
            if let Some(smaller) = smaller_rank::<T>(plan, [n, m, k], room) {
                (kernel, rank) = (Some(Format::Full), Some(smaller));
                let plan = Plan { rank, ..*plan };
                bytes = bytes - solver + plan.bytes::<T>(n, m, k);
            }
        }
        bytes += kernel.map_or(0, |format| Store::<T>::bytes(n, format));
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
    [n, m, k]: [usize; 3],
    room: u64,
) -> Option<usize> {
    if plan.method != Method::Pcg || plan.rank.is_some() {
        return None;
    }
    let usual = rank_for(n, m);
    let fits = |rank: usize| {
        let plan = Plan {
            rank: Some(rank),
            ..*plan
        };
        plan.bytes::<T>(n, m, k) <= room
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
fn remedy<T: Scalar>(config: &Effective, n: usize, m: usize, k: usize, fixed: u64) -> String {
    let fits = |method: Method, block_size: usize| {
        let plan = Plan {
            method,
            block_size,
            ..config.plan()
        };
        fixed + plan.bytes::<T>(n, m, k) <= config.budget.0
    };
    let method = match config.method.draws_blocks() {
        true => config.method,
        false => Method::Mp,
    };
    let sizes = (0..).map(|i| (n + 1) >> i).take_while(|&size| size > 0);
    match sizes.into_iter().find(|&size| fits(method, size)) {
        Some(size) => format!("use --method {method} --block-size {size}, or raise --memory"),
        None => "use fewer rows (--train-rows), or raise --memory".to_string(),
    }
}
