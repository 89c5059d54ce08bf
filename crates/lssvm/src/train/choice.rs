//! Which method, if none was asked for, and why.

use super::Shape;
use super::memory_plan::{BASE_BYTES, smaller_rank};
use crate::kernel::KernelName;
use crate::linalg::{Levels, Scalar};
use crate::memory::Size;
use crate::solve::gauss_seidel::GaussSeidel;
use crate::solve::{Method, Plan};
use crate::system::{Format, Store, TILE};

/// Up to so many rows the direct solution takes seconds, and nothing is more certain:
/// its N³/3 operations are 1.1·10¹².
const MOST_ROWS_FOR_EXACT: usize = 15_000;

/// Rows of a block of Gauss–Seidel, where there are as many: larger blocks converge in
/// fewer passes, and their factors take N·J values.
const LARGEST_BLOCK: usize = 4 * TILE;

/// The same where there is a single pass: what rows of different blocks have to tell each
/// other is told once, so that larger blocks are worth half as many operations for their
/// factors, N·J²/3, as the pass takes for its half of the kernel matrix, N²M. Validation error
/// of 8,000 digits and their shifts: 1.41 % with 4,096 rows, 1.25 with 12,288.
const LARGEST_BLOCK_OF_ONE_PASS: usize = 16 * TILE;

/// Operations of computing the kernel matrix once that are worth repeating in every pass:
/// some minutes.
const MOST_OPERATIONS: f64 = 3e13;

/// What is left over of the budget for what is not reckoned here.
const SLACK: f64 = 0.95;

/// The method for a kernel matrix of `n` rows that is there already.
pub(super) fn with_kernel(n: usize) -> Method {
    match n {
        ..=MOST_ROWS_FOR_EXACT => Method::Exact,
        _ => Method::Pcg,
    }
}

/// The method, and the reason as half a sentence.
pub(super) struct Choice {
    pub(super) method: Method,
    pub(super) why: String,
}

/// Chooses among `exact`, `pcg`, `gauss-seidel` and `mp` from what fits in memory.
///
/// | | |
/// |---|---|
/// | up to 15,000 rows | `exact` |
/// | the kernel matrix fits, in half precision if need be | `pcg`: a small residual in many cheap steps |
/// | it does not | `gauss-seidel`: the least error in few passes, each of which computes Ω |
/// | that takes too long, or the rows themselves do not fit | `centers`: a model of some rows |
/// | no room for its factors either, or a kernel that is not positive | `mp` |
///
/// `loo`: leave-one-out scores are wanted, for which `exact` and `pcg` need more memory.
pub(super) fn choose<T: Scalar>(
    shape: &Shape,
    kernel: KernelName,
    budget: Size,
    loo: bool,
) -> Choice {
    let room = Room::new::<T>(shape, budget);
    let n = shape.rows;
    let choice = |method, why: String| Choice { method, why };
    let plan = |method| Plan {
        method,
        block_size: gauss_seidel_block::<T>(shape, budget, false).unwrap_or(TILE),
        seed: 0,
        averages: 1,
        rank: None,
        tolerance: 0.0,
        loo,
    };
    let own = shape.own_rows();
    let bytes = |method| plan(method).bytes::<T>([own, n], shape.width(), shape.outputs);
    let store = |format| Store::<T>::bytes(n, format) / shape.ranks as u64;
    // Its factor is not shared.
    let few = n <= MOST_ROWS_FOR_EXACT && shape.ranks == 1;
    if kernel == KernelName::Sigmoid {
        let matrix = 2 * (n as u64).pow(2) * size_of::<T>() as u64;
        return match few && room.fits(matrix) {
            true => choice(
                Method::Exact,
                "the kernel need not be positive for it".into(),
            ),
            false => choice(
                Method::Mp,
                "the kernel need not be positive for it, and the direct solution is too large"
                    .into(),
            ),
        };
    }
    if few && room.fits(bytes(Method::Exact)) {
        return choice(
            Method::Exact,
            format!("the direct solution of {n} rows takes little time and memory"),
        );
    }
    let left = room.all.saturating_sub(store(Format::Full));
    let sizes = ([own, n], shape.width(), shape.outputs);
    let tight = smaller_rank::<T>(&plan(Method::Pcg), sizes, left).is_some();
    for (format, how) in [
        (Format::Full, "fits in memory"),
        (Format::Half, "fits in memory in half precision"),
    ] {
        let small = format == Format::Full && tight;
        if small || room.fits(bytes(Method::Pcg) + store(format)) {
            return choice(
                Method::Pcg,
                match shape.ranks {
                    1 => format!(
                        "{n} rows are many for a direct solution, and the kernel matrix {how}"
                    ),
                    ranks => format!("the kernel matrix, shared by {ranks} ranks, {how}"),
                },
            );
        }
    }
    let not_kept = "the kernel matrix does not fit in memory";
    let operations = own as f64 * n as f64 * shape.width() as f64;
    if room.all == 0 || operations > MOST_OPERATIONS {
        let how = match room.all {
            0 => "nor do the rows",
            _ => "and takes too long to compute in every pass",
        };
        return choice(Method::Centers, format!("{not_kept}, {how}"));
    }
    match gauss_seidel_block::<T>(shape, budget, false) {
        Some(_) => choice(
            Method::GaussSeidel,
            format!("{not_kept}: few passes must do"),
        ),
        None => choice(Method::Mp, format!("{not_kept}: block by block")),
    }
}

/// The method that gives leave-one-out scores where this one would be chosen. Where that is
/// `centers` there is none: anything else takes too long.
pub(super) fn with_scores(chosen: Method, kernel: KernelName) -> Method {
    match chosen {
        Method::Exact | Method::Pcg | Method::Centers => chosen,
        _ if kernel == KernelName::Sigmoid => Method::Exact,
        _ => Method::Pcg,
    }
}

/// The rows of a block whose factors fit; none if not even the smallest do.
pub(super) fn gauss_seidel_block<T: Scalar>(
    shape: &Shape,
    budget: Size,
    one_pass: bool,
) -> Option<usize> {
    let room = Room::new::<T>(shape, budget);
    let largest = match one_pass {
        true => {
            let rows = (1.5 * shape.rows as f64 * shape.width() as f64).sqrt() as usize;
            rows.clamp(LARGEST_BLOCK, LARGEST_BLOCK_OF_ONE_PASS)
        }
        false => LARGEST_BLOCK,
    };
    let sizes = (1..=largest / TILE).rev().map(|tiles| tiles * TILE);
    let mut fitting = sizes.filter(|&size| {
        room.fits(GaussSeidel::<T>::bytes(
            [shape.own_rows(), shape.rows],
            size,
            shape.width(),
            shape.outputs,
        ))
    });
    fitting.next()
}

/// What the data leave of the budget.
struct Room {
    all: u64,
    /// Without the slack.
    usable: u64,
}

impl Room {
    fn new<T: Scalar>(shape: &Shape, budget: Size) -> Self {
        let value = size_of::<T>() as u64;
        let rows = shape.own_rows() + shape.others;
        // Rows of pixels are kept as bytes, too, and whether they are is not known yet.
        let bytes = match shape.kept {
            Some(_) => 0,
            None => Levels::bytes(rows, shape.features),
        };
        let features = shape.bytes::<T>(rows);
        let data = features + bytes + value * rows as u64 * shape.outputs as u64;
        let usable = (SLACK * budget.0 as f64) as u64;
        Self {
            all: budget.0.saturating_sub(BASE_BYTES + data),
            usable: usable.saturating_sub(BASE_BYTES + data),
        }
    }

    fn fits(&self, bytes: u64) -> bool {
        bytes <= self.usable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(rows: usize, features: usize) -> Shape {
        Shape {
            rows,
            features,
            outputs: 10,
            others: 0,
            validation: false,
            image: None,
            kept: None,
            ranks: 1,
        }
    }

    fn chosen(rows: usize, kernel: KernelName, budget: u64) -> Method {
        choose::<f32>(&shape(rows, 784), kernel, Size(budget), false).method
    }

    #[test]
    fn a_single_pass_has_larger_blocks() {
        let gigabyte = 1_000_000_000;
        for (rows, features, gigabytes, tiles) in [
            (60_000, 784, 8, [4, 8]),
            (60_000, 10, 8, [4, 4]),
            (50_000, 3_072, 8, [4, 14]),
            // Factors of four or more tiles do not fit beside the rows.
            (60_000, 784, 1, [3, 3]),
            // Blocks whose factors are not kept may be larger.
            (540_000, 784, 8, [4, 15]),
        ] {
            let block = |one_pass| {
                let budget = Size(gigabytes * gigabyte);
                gauss_seidel_block::<f32>(&shape(rows, features), budget, one_pass)
            };
            let found = [false, true].map(|one_pass| block(one_pass).unwrap() / TILE);
            assert_eq!(found, tiles, "{rows} × {features}, {gigabytes} GB");
        }
    }

    #[test]
    fn the_method_follows_size_memory_and_kernel() {
        let gigabyte = 1_000_000_000;
        for (rows, gigabytes, method) in [
            (50, 1, Method::Exact),
            (15_000, 8, Method::Exact),
            (60_000, 20, Method::Pcg),
            // 7.3 GB in f32: half precision.
            (60_000, 6, Method::Pcg),
            (60_000, 2, Method::GaussSeidel),
            (1_000_000, 4, Method::Centers),
            (1_000_000, 1, Method::Centers),
        ] {
            let found = chosen(rows, KernelName::Rbf, gigabytes * gigabyte);
            assert_eq!(found, method, "{rows} rows, {gigabytes} GB");
        }
        assert_eq!(chosen(5_000, KernelName::Sigmoid, gigabyte), Method::Exact);
        assert_eq!(chosen(60_000, KernelName::Sigmoid, gigabyte), Method::Mp);
    }
}
