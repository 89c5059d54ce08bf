//! Large memory in large pages.
//!
//! A system hands out memory in pages, and clears each when it is first written to.
//! On a virtual machine that took 4 µs for a page of 4 kB: 1 GB/s, where a core writes
//! ten times as fast. In pages of 2 MB it took a quarter of that, and reading needs
//! fewer look-ups of addresses. Linux must be asked for them.

use bytemuck::Zeroable;

/// Memory below this is not worth a call: a few large pages.
#[cfg(target_os = "linux")]
const WORTH_BYTES: usize = 16 << 20;

/// Bytes of a large page on x86-64, and mostly elsewhere.
#[cfg(target_os = "linux")]
const PAGE: usize = 2 << 20;

/// A vector of zeros, whose memory has not been touched yet.
pub fn zeros<T: Zeroable + Copy>(length: usize) -> Vec<T> {
    let values = bytemuck::zeroed_vec(length);
    advise(&values);
    values
}

/// An empty vector with room for so many values.
pub fn with_capacity<T>(capacity: usize) -> Vec<T> {
    let values = Vec::with_capacity(capacity);
    advise(&values);
    values
}

/// Asks for large pages for all of the vector's memory, whether it is used or not.
fn advise<T>(values: &Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        let bytes = values.capacity() * size_of::<T>();
        if bytes < WORTH_BYTES {
            return;
        }
        let start = values.as_ptr() as usize;
        let first = start.next_multiple_of(PAGE);
        let end = (start + bytes) / PAGE * PAGE;
        // SAFETY: the range lies within memory that this vector owns, and the call
        // changes nothing but the size of its pages. Where it is refused, small pages do.
        unsafe {
            libc::madvise(first as *mut _, end - first, libc::MADV_HUGEPAGE);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = values;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_and_small_vectors_are_zero_and_have_their_room() {
        for length in [0, 1, 1000, 9_000_001] {
            let values: Vec<f32> = zeros(length);
            assert_eq!(values.len(), length);
            assert!(values.iter().all(|&v| v == 0.0));
            assert!(with_capacity::<f32>(length).capacity() >= length);
        }
    }
}
