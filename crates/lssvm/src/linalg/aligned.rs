//! Values that begin with a line of the cache, so that no register is loaded from two lines.
//!
//! The allocator's large pieces begin 16 bytes after a line. Products with tiles that do so
//! took 1.15 times as long in `f32` (AVX-512, whose registers are lines; Zen 5).

use std::ops::{Deref, DerefMut};

use bytemuck::Zeroable;

use super::huge;
use super::simd::LINE;

/// A slice of its own memory.
#[derive(Debug)]
pub struct Aligned<T> {
    values: Vec<T>,
    begin: usize,
}

impl<T: Zeroable + Copy> Aligned<T> {
    /// So many zeros, whose memory has not been touched yet.
    pub fn zeros(count: usize) -> Self {
        let mut aligned = Self {
            values: huge::zeros(count + Self::SPARE),
            begin: 0,
        };
        aligned.begin_with_a_line(count);
        aligned
    }

    /// So many zeros instead of what there was, where it was if there is room.
    pub fn reset(&mut self, count: usize) {
        self.values.clear();
        self.values.resize(count + Self::SPARE, T::zeroed());
        self.begin_with_a_line(count);
    }

    /// Values of a line.
    const SPARE: usize = LINE / size_of::<T>();

    fn begin_with_a_line(&mut self, count: usize) {
        // Its value need not mean anything, says its documentation.
        let offset = self.values.as_ptr().align_offset(LINE);
        self.begin = offset.min(Self::SPARE);
        self.values.truncate(self.begin + count);
    }
}

impl<T> Default for Aligned<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            begin: 0,
        }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.values[self.begin..]
    }
}

impl<T> DerefMut for Aligned<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values[self.begin..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_begin_with_a_line_and_are_zero_again() {
        // As a vector would have it, and as large pages have it.
        for count in [0, 1, 1000, 9_000_001] {
            let mut values = Aligned::<f32>::zeros(count);
            for again in [count, count / 2, 2 * count] {
                assert_eq!(values.as_ptr() as usize % LINE, 0);
                assert!(values.iter().all(|&v| v == 0.0));
                values.fill(1.0);
                values.reset(again);
                assert_eq!(values.len(), again);
            }
        }
    }
}
