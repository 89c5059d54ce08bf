//! Inner products and distances of sparse rows.
//!
//! Some rows of X, as many as fill a few registers, are written out side by side: a panel
//! with one line for each column that they have, in which a value of each row stands. A
//! row of Z is then read once for all of them, and each of its values meets a whole line:
//! the work is that of the values of Z that are kept, times the registers of a panel.
//! Columns that no row of X has share one line of zeros, so that a panel stays in the
//! cache however many columns there are.

use std::cell::RefCell;

use crate::linalg::simd::{Arch, Job, Vector, dispatch};
use crate::linalg::{CsrRef, MatMut, Scalar};

/// Rows of X in a panel: two registers of the widest kind for `f32`, four for `f64`.
const PANEL: usize = 32;

/// The line of zeros.
const ZEROS: u32 = 0;

thread_local! {
    /// For each column its line in the panel; all of them [`ZEROS`] between two panels.
    static LINES: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// `out[i][j] = ⟨x_i, z_j⟩`
pub(super) fn products<T: Scalar>(out: MatMut<'_, T>, x: CsrRef<'_, T>, z: CsrRef<'_, T>) {
    fill::<T, false>(out, x, z);
}

/// `out[i][j] = ‖x_i − z_j‖₁`
pub(super) fn distances<T: Scalar>(out: MatMut<'_, T>, x: CsrRef<'_, T>, z: CsrRef<'_, T>) {
    fill::<T, true>(out, x, z);
}

fn fill<T: Scalar, const DISTANCES: bool>(
    mut out: MatMut<'_, T>,
    x: CsrRef<'_, T>,
    z: CsrRef<'_, T>,
) {
    LINES.with_borrow_mut(|lines| {
        if lines.len() < x.cols() {
            lines.resize(x.cols(), ZEROS);
        }
        let mut panel = Vec::new();
        let mut columns = Vec::new();
        for top in (0..x.rows()).step_by(PANEL) {
            let rows = x.range(top, (top + PANEL).min(x.rows()));
            let start = write_panel(rows, lines, &mut panel, &mut columns);
            dispatch(Multiply::<T, DISTANCES> {
                out: out.reborrow(),
                top,
                rows: rows.rows(),
                // A distance begins with ‖x‖₁, as if z were zero.
                start: if DISTANCES { start } else { [T::ZERO; PANEL] },
                panel: &panel,
                lines,
                z,
            });
            columns
                .iter()
                .for_each(|&c: &u32| lines[c as usize] = ZEROS);
        }
    });
}

/// Writes out rows side by side, notes which line each column has, and returns ‖x‖₁ of
/// each.
fn write_panel<T: Scalar>(
    rows: CsrRef<'_, T>,
    lines: &mut [u32],
    panel: &mut Vec<T>,
    columns: &mut Vec<u32>,
) -> [T; PANEL] {
    panel.clear();
    panel.resize(PANEL, T::ZERO);
    columns.clear();
    let mut norms = [T::ZERO; PANEL];
    for (i, norm) in norms.iter_mut().enumerate().take(rows.rows()) {
        let (own, values) = rows.row(i);
        for (&column, &value) in own.iter().zip(values) {
            let line = &mut lines[column as usize];
            if *line == ZEROS {
                columns.push(column);
                *line = columns.len() as u32;
                panel.resize(panel.len() + PANEL, T::ZERO);
            }
            panel[*line as usize * PANEL + i] = value;
            *norm += value.abs();
        }
    }
    norms
}

/// One panel against all rows of Z.
struct Multiply<'a, T, const DISTANCES: bool> {
    out: MatMut<'a, T>,
    /// The first row of the panel in `out`, and their number.
    top: usize,
    rows: usize,
    start: [T; PANEL],
    panel: &'a [T],
    lines: &'a [u32],
    z: CsrRef<'a, T>,
}

impl<T: Scalar, const DISTANCES: bool> Job for Multiply<'_, T, DISTANCES> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arch>(mut self) {
        let mut sums = [T::ZERO; PANEL];
        for j in 0..self.z.rows() {
            let (columns, values) = self.z.row(j);
            // SAFETY: this is `run`, for its own `A`; lines were written for all columns,
            // and each is a line of the panel.
            unsafe {
                // Registers of a panel, a number that the compiler sees.
                match PANEL / T::Vector::<A>::LANES {
                    2 => self.sums::<A, 2>(columns, values, &mut sums),
                    4 => self.sums::<A, 4>(columns, values, &mut sums),
                    _ => self.sums::<A, 8>(columns, values, &mut sums),
                }
            }
            for (i, &sum) in sums.iter().enumerate().take(self.rows) {
                self.out.row_mut(self.top + i)[j] = sum;
            }
        }
    }
}

impl<T: Scalar, const DISTANCES: bool> Multiply<'_, T, DISTANCES> {
    /// What a row of Z makes with each row of the panel, `R` registers wide.
    ///
    /// # Safety
    /// As [`Vector`]; `columns` must have lines, and these be in the panel.
    #[inline(always)]
    unsafe fn sums<A: Arch, const R: usize>(
        &self,
        columns: &[u32],
        values: &[T],
        out: &mut [T; PANEL],
    ) {
        let lanes = T::Vector::<A>::LANES;
        assert_eq!(R * lanes, PANEL);
        // SAFETY: the caller's.
        unsafe {
            let zero = T::Vector::<A>::splat(T::ZERO);
            let mut sums = [zero; R];
            let starts = self.start.chunks_exact(lanes);
            for (sum, start) in sums.iter_mut().zip(starts) {
                *sum = T::Vector::<A>::load(start);
            }
            // Of distances what is taken off: |x| of the columns that z has. Of products
            // those of every second value: more sums at once hide what an addition takes.
            let mut others = [zero; R];
            for at in 0..columns.len() {
                let column = *columns.get_unchecked(at) as usize;
                let line = *self.lines.get_unchecked(column) as usize * PANEL;
                let value = T::Vector::<A>::splat(*values.get_unchecked(at));
                for r in 0..R {
                    let place = line + r * lanes;
                    let x = T::Vector::<A>::load(self.panel.get_unchecked(place..place + lanes));
                    if DISTANCES {
                        sums[r] = sums[r].add_distance(x, value);
                        others[r] = others[r].add_distance(x, zero);
                    } else if at % 2 == 1 {
                        others[r] = others[r].add_product(x, value);
                    } else {
                        sums[r] = sums[r].add_product(x, value);
                    }
                }
            }
            for r in 0..R {
                let part = out.get_unchecked_mut(r * lanes..(r + 1) * lanes);
                let sign = T::Vector::<A>::splat(if DISTANCES { -T::ONE } else { T::ONE });
                sums[r].add_product(others[r], sign).store(part);
            }
        }
    }
}
