//! Products of levels by the instructions of x86 processors.

use std::arch::is_x86_feature_detected as has;
use std::arch::x86_64::*;

use super::LevelsRef;
use super::products::{Dots, blocks, four, four_signed};
use crate::linalg::{MatMut, Scalar};

/// Four products of bytes a lane in one instruction: AVX-512 VNNI.
struct Vnni512;
/// The same in narrower registers: AVX-VNNI.
struct Vnni256;
/// Two products of 16 bits a lane: AVX2.
struct Avx2;

impl Dots for Vnni512 {
    type Same = __m512i;
    type Lanes = __m512i;
    type Sums = __m512i;
    const LANES: usize = 16;
    const VALUES: usize = 4;

    #[inline(always)]
    fn of_x(bytes: &[u8]) -> i32 {
        four(bytes)
    }
    #[inline(always)]
    fn of_z(bytes: &[u8]) -> i32 {
        four_signed(bytes)
    }
    #[inline(always)]
    unsafe fn zeros() -> __m512i {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm512_setzero_si512() }
    }
    #[inline(always)]
    unsafe fn same(x: *const i32) -> __m512i {
        // SAFETY: the caller has the instruction set, and a lane.
        unsafe { _mm512_set1_epi32(x.read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn lanes(z: *const i32) -> __m512i {
        // SAFETY: the caller has the instruction set, and all lanes.
        unsafe { _mm512_loadu_si512(z.cast()) }
    }
    #[inline(always)]
    unsafe fn add(sums: __m512i, x: __m512i, z: __m512i) -> __m512i {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm512_dpbusd_epi32(sums, x, z) }
    }
    #[inline(always)]
    unsafe fn store(sums: __m512i, out: *mut i32) {
        // SAFETY: the caller has the instruction set, and room.
        unsafe { _mm512_storeu_si512(out.cast(), sums) }
    }
}

impl Dots for Vnni256 {
    type Same = __m256i;
    type Lanes = __m256i;
    type Sums = __m256i;
    const LANES: usize = 8;
    const VALUES: usize = 4;

    #[inline(always)]
    fn of_x(bytes: &[u8]) -> i32 {
        four(bytes)
    }
    #[inline(always)]
    fn of_z(bytes: &[u8]) -> i32 {
        four_signed(bytes)
    }
    #[inline(always)]
    unsafe fn zeros() -> __m256i {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm256_setzero_si256() }
    }
    #[inline(always)]
    unsafe fn same(x: *const i32) -> __m256i {
        // SAFETY: the caller has the instruction set, and a lane.
        unsafe { _mm256_set1_epi32(x.read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn lanes(z: *const i32) -> __m256i {
        // SAFETY: the caller has the instruction set, and all lanes.
        unsafe { _mm256_loadu_si256(z.cast()) }
    }
    #[inline(always)]
    unsafe fn add(sums: __m256i, x: __m256i, z: __m256i) -> __m256i {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm256_dpbusd_avx_epi32(sums, x, z) }
    }
    #[inline(always)]
    unsafe fn store(sums: __m256i, out: *mut i32) {
        // SAFETY: the caller has the instruction set, and room.
        unsafe { _mm256_storeu_si256(out.cast(), sums) }
    }
}

impl Dots for Avx2 {
    type Same = __m256i;
    type Lanes = __m256i;
    type Sums = __m256i;
    const LANES: usize = 8;
    const VALUES: usize = 2;

    #[inline(always)]
    fn of_x(bytes: &[u8]) -> i32 {
        two([bytes[0], bytes[1]].map(i16::from))
    }
    #[inline(always)]
    fn of_z(bytes: &[u8]) -> i32 {
        two([bytes[0], bytes[1]].map(|byte| i16::from(byte) - 128))
    }
    #[inline(always)]
    unsafe fn zeros() -> __m256i {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm256_setzero_si256() }
    }
    #[inline(always)]
    unsafe fn same(x: *const i32) -> __m256i {
        // SAFETY: the caller has the instruction set, and a lane.
        unsafe { _mm256_set1_epi32(x.read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn lanes(z: *const i32) -> __m256i {
        // SAFETY: the caller has the instruction set, and all lanes.
        unsafe { _mm256_loadu_si256(z.cast()) }
    }
    #[inline(always)]
    unsafe fn add(sums: __m256i, x: __m256i, z: __m256i) -> __m256i {
        // SAFETY: the caller has the instruction set.
        unsafe { _mm256_add_epi32(sums, _mm256_madd_epi16(x, z)) }
    }
    #[inline(always)]
    unsafe fn store(sums: __m256i, out: *mut i32) {
        // SAFETY: the caller has the instruction set, and room.
        unsafe { _mm256_storeu_si256(out.cast(), sums) }
    }
}

/// Two values of 16 bits as a lane.
#[inline(always)]
fn two(values: [i16; 2]) -> i32 {
    bytemuck::cast(values)
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,bmi2")]
fn by_vnni512<T: Scalar>(out: MatMut<'_, T>, x: LevelsRef<'_>, z: LevelsRef<'_>) {
    // SAFETY: the features are enabled.
    unsafe { blocks::<T, Vnni512, 8, 2>(out, x, z) }
}

#[target_feature(enable = "avxvnni,avx2,fma,bmi2")]
fn by_vnni256<T: Scalar>(out: MatMut<'_, T>, x: LevelsRef<'_>, z: LevelsRef<'_>) {
    // SAFETY: the features are enabled.
    unsafe { blocks::<T, Vnni256, 6, 2>(out, x, z) }
}

#[target_feature(enable = "avx2,fma,bmi2")]
fn by_avx2<T: Scalar>(out: MatMut<'_, T>, x: LevelsRef<'_>, z: LevelsRef<'_>) {
    // SAFETY: the features are enabled.
    unsafe { blocks::<T, Avx2, 6, 2>(out, x, z) }
}

fn has_avx2() -> bool {
    has!("avx2") && has!("fma") && has!("bmi2")
}

fn has_vnni256() -> bool {
    has_avx2() && has!("avxvnni")
}

fn has_vnni512() -> bool {
    let wide = has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
    has_avx2() && wide && has!("avx512vnni")
}

/// Whether there is one of these instruction sets.
pub(super) fn is_there() -> bool {
    has_avx2()
}

/// The product by the best of them; there must be one.
pub(super) fn products<T: Scalar>(out: MatMut<'_, T>, x: LevelsRef<'_>, z: LevelsRef<'_>) {
    assert!(is_there(), "rows are levels only where there is");
    // SAFETY: the processor has the features, as is asked here and was asked above.
    unsafe {
        match (has_vnni512(), has_vnni256()) {
            (true, _) => by_vnni512(out, x, z),
            (false, true) => by_vnni256(out, x, z),
            (false, false) => by_avx2(out, x, z),
        }
    }
}

/// All of them that this processor has, by their names.
#[cfg(test)]
pub(super) fn ways<T: Scalar>() -> Vec<(&'static str, super::products::Way<T>)> {
    let mut ways: Vec<(&'static str, super::products::Way<T>)> = Vec::new();
    if has_avx2() {
        // SAFETY: the processor has the features, as was just asked.
        ways.push(("AVX2", |out, x, z| unsafe { by_avx2(out, x, z) }));
    }
    if has_vnni256() {
        // SAFETY: as above.
        ways.push(("AVX-VNNI", |out, x, z| unsafe { by_vnni256(out, x, z) }));
    }
    if has_vnni512() {
        // SAFETY: as above.
        ways.push(("AVX-512", |out, x, z| unsafe { by_vnni512(out, x, z) }));
    }
    ways
}
