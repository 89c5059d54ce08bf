//! What the values of many kernels are made of, computed once.
//!
//! Inner products serve every kernel but the Laplacian, whatever its parameters, and L1
//! distances that one: Ω is then a map of each value, which costs a fraction of the
//! product. N²/2 values of memory.

use super::store::{compute_tiles, extent, tiles_by};
use crate::Result;
use crate::kernel::{Kernel, Relation, Samples};
use crate::linalg::{Matrix, Scalar};

/// ⟨xᵢ, xⱼ⟩ or ‖xᵢ − xⱼ‖₁ of training rows, as tiles of the lower half.
#[derive(Debug)]
pub struct Products<T: Scalar> {
    relation: Relation,
    tiles: Vec<Matrix<T>>,
}

impl<T: Scalar> Products<T> {
    /// Computes them. `progress` as for [`super::System::keep_kernel`].
    pub fn new(
        relation: Relation,
        samples: &Samples<T>,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Self> {
        let tiles = compute_tiles(&relation, samples, progress)?;
        Ok(Self { relation, tiles })
    }

    /// What they are.
    pub fn relation(&self) -> Relation {
        self.relation
    }

    /// Tiles of Ω of the same rows.
    pub(super) fn tiles(
        &self,
        kernel: &Kernel,
        samples: &Samples<T>,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Vec<Matrix<T>>> {
        let n = samples.len();
        tiles_by(n, progress, &|(row, column)| {
            let mut tile = self.tiles[row * (row + 1) / 2 + column].clone();
            let (rows, columns) = (extent(row, n), extent(column, n));
            let x = samples.range(rows.start, rows.end);
            let z = samples.range(columns.start, columns.end);
            kernel.map(tile.view_mut(), x, z);
            tile
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::system::tests::{POSITIVE_KERNELS, problem};
    use crate::system::{Products, TILE};

    #[test]
    fn kernels_from_products_are_those_from_rows() {
        for kernel in POSITIVE_KERNELS {
            let mut system = problem::<f32>(TILE + 9, 5, 1, kernel, 1.0);
            let expected = system.tiles(&mut |_| true).unwrap();
            let products =
                Products::new(kernel.relation(), system.samples(), &mut |_| true).unwrap();
            system.use_products(Arc::new(products));
            let found = system.tiles(&mut |_| true).unwrap();
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                let pairs = found.values().iter().zip(expected.values());
                let off = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(off < 1e-6 * expected.values()[0].abs().max(1.0), "{off}");
            }
        }
    }
}
