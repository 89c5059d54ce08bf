//! Compiles a loop for several instruction sets and picks one at run time.
//!
//! A [`Job`] is a loop over slices. [`dispatch`] runs the copy that was compiled
//! for the widest registers this processor has; without any of them the
//! portable copy runs. No `target-cpu` flag is needed.
//!
//! Elementwise loops are left to the compiler. Loops that must keep their sums
//! in registers use [`Vector`]: written with arrays, the compiler put the sums
//! of `Sᵀ · R` in memory and reached a tenth of the speed. In such a loop use
//! no closure: the compiler compiles it for the portable instruction set.

use half::f16;

use super::Scalar;

/// An instruction set, as far as a loop needs to know it.
pub trait Arch {
    /// Whether a multiplication and an addition are one instruction.
    const FMA: bool;
    /// Bytes in a vector register.
    const REGISTER_BYTES: usize;
    /// How many accumulators of one register fit beside the operands.
    const ACCUMULATORS: usize;
    /// A register of `f32`.
    type F32: Vector<f32>;
    /// A register of `f64`.
    type F64: Vector<f64>;
}

/// One vector register of `T`.
///
/// # Safety
/// All functions need the instruction set the type belongs to: call them only
/// in [`Job::run`], for that job's own `Arch`.
#[allow(clippy::missing_safety_doc, reason = "said once, above, for all")]
pub trait Vector<T>: Copy {
    /// Values in it.
    const LANES: usize;
    /// The same value in all lanes.
    unsafe fn splat(value: T) -> Self;
    /// The first `LANES` values of the slice, which must have as many.
    unsafe fn load(values: &[T]) -> Self;
    /// The first `LANES` values of the slice, widened; it must have as many.
    unsafe fn load_half(values: &[f16]) -> Self;
    /// Writes the first `LANES` values of the slice, which must have as many.
    unsafe fn store(self, values: &mut [T]);
    /// Writes the first `LANES` values of the slice, rounded to the nearest; it must
    /// have as many.
    unsafe fn store_half(self, values: &mut [f16]);
    /// `self + a · b`
    unsafe fn add_product(self, a: Self, b: Self) -> Self;
    /// `self + |a − b|`
    unsafe fn add_distance(self, a: Self, b: Self) -> Self;
    /// Σ of the lanes.
    unsafe fn sum(self) -> T;
    /// Transposes the first `LANES` registers; there must be as many.
    #[inline(always)]
    unsafe fn turn(square: &mut [Self])
    where
        T: Scalar,
    {
        let mut rows = [[T::ZERO; MOST_LANES]; MOST_LANES];
        let mut turned = rows;
        // SAFETY: a row has room for the lanes of any register; the caller has the
        // instruction set.
        unsafe {
            for (register, row) in square.iter().zip(&mut rows).take(Self::LANES) {
                register.store(row);
            }
            for (i, row) in rows.iter().enumerate().take(Self::LANES) {
                for (j, &v) in row.iter().enumerate().take(Self::LANES) {
                    turned[j][i] = v;
                }
            }
            for (register, row) in square.iter_mut().zip(&turned).take(Self::LANES) {
                *register = Self::load(row);
            }
        }
    }
}

/// The most lanes of a register.
pub const MOST_LANES: usize = 16;

/// AVX-512.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub struct Avx512;
/// AVX2 with FMA.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub struct Avx2;
/// Whatever the compiler assumes for the target.
#[derive(Debug, Clone, Copy)]
pub struct Portable;

#[cfg(target_arch = "x86_64")]
impl Arch for Avx512 {
    const FMA: bool = true;
    const REGISTER_BYTES: usize = 64;
    const ACCUMULATORS: usize = 24;
    type F32 = x86::F32x16;
    type F64 = x86::F64x8;
}
#[cfg(target_arch = "x86_64")]
impl Arch for Avx2 {
    const FMA: bool = true;
    const REGISTER_BYTES: usize = 32;
    const ACCUMULATORS: usize = 12;
    type F32 = x86::F32x8;
    type F64 = x86::F64x4;
}
impl Arch for Portable {
    const FMA: bool = false;
    const REGISTER_BYTES: usize = 16;
    const ACCUMULATORS: usize = 12;
    type F32 = Few<f32>;
    type F64 = Few<f64>;
}

/// A loop that wants the widest registers.
pub trait Job {
    /// What it returns.
    type Output;
    /// The loop. Mark it `#[inline(always)]`, or it is compiled for the
    /// portable instruction set only.
    fn run<A: Arch>(self) -> Self::Output;
}

/// `a * b + c`, in one instruction where there is one.
#[inline(always)]
pub fn mul_add<A: Arch, T: Scalar>(a: T, b: T, c: T) -> T {
    // Without the instruction, `mul_add` is a call of a slow library function.
    if A::FMA { a.mul_add(b, c) } else { a * b + c }
}

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// Asks for the cache line at this address, which need not be valid, so that it is near when
/// it is read.
///
/// Into the first level, though it may be gone from there by then: asked for the second level
/// alone, a Zen 5 fetches late, and products with tiles in `f32` take 1.5 times as long.
#[inline(always)]
pub fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which reads nothing; every x86-64 processor has it.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Runs the job with the best instruction set of this processor.
#[inline]
pub fn dispatch<J: Job>(job: J) -> J::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2")]
        fn avx512<J: Job>(job: J) -> J::Output {
            job.run::<Avx512>()
        }
        #[target_feature(enable = "avx2,fma,f16c,bmi2")]
        fn avx2<J: Job>(job: J) -> J::Output {
            job.run::<Avx2>()
        }
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("bmi2")
        {
            // SAFETY: the processor has the features, as just asked.
            return unsafe { avx512(job) };
        }
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("bmi2")
        {
            // SAFETY: the processor has the features, as just asked.
            return unsafe { avx2(job) };
        }
    }
    job.run::<Portable>()
}

/// Four values that the compiler may put in a register.
#[derive(Debug, Clone, Copy)]
pub struct Few<T>([T; 4]);

impl<T: Scalar> Vector<T> for Few<T> {
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn splat(value: T) -> Self {
        Few([value; 4])
    }
    #[inline(always)]
    unsafe fn load(values: &[T]) -> Self {
        Few(*values.first_chunk().expect("four values"))
    }
    #[inline(always)]
    unsafe fn load_half(values: &[f16]) -> Self {
        Few(std::array::from_fn(|l| T::from_f64(values[l].to_f64())))
    }
    #[inline(always)]
    unsafe fn store(self, values: &mut [T]) {
        values[..4].copy_from_slice(&self.0);
    }
    #[inline(always)]
    unsafe fn store_half(self, values: &mut [f16]) {
        for (out, v) in values.iter_mut().zip(self.0) {
            *out = f16::from_f32(v.to_f64() as f32);
        }
    }
    #[inline(always)]
    unsafe fn add_product(self, a: Self, b: Self) -> Self {
        Few(std::array::from_fn(|l| self.0[l] + a.0[l] * b.0[l]))
    }
    #[inline(always)]
    unsafe fn add_distance(self, a: Self, b: Self) -> Self {
        Few(std::array::from_fn(|l| self.0[l] + (a.0[l] - b.0[l]).abs()))
    }
    #[inline(always)]
    unsafe fn sum(self) -> T {
        (self.0[0] + self.0[1]) + (self.0[2] + self.0[3])
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! Registers of x86 processors.

    use half::f16;
    use std::arch::x86_64::*;

    use super::Vector;

    // Functions and not closures, which would be compiled for the portable set.

    #[inline(always)]
    unsafe fn half_to_f32x16(p: *const f16) -> __m512 {
        // SAFETY: the caller has the instruction set, and as many values.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(p.cast())) }
    }

    #[inline(always)]
    unsafe fn half_to_f64x8(p: *const f16) -> __m512d {
        // SAFETY: the caller has the instruction set, and as many values.
        unsafe { _mm512_cvtps_pd(_mm256_cvtph_ps(_mm_loadu_si128(p.cast()))) }
    }

    #[inline(always)]
    unsafe fn half_to_f32x8(p: *const f16) -> __m256 {
        // SAFETY: the caller has the instruction set, and as many values.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(p.cast())) }
    }

    #[inline(always)]
    unsafe fn half_to_f64x4(p: *const f16) -> __m256d {
        // SAFETY: the caller has the instruction set, and as many values.
        unsafe { _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64(p.cast()))) }
    }

    #[inline(always)]
    unsafe fn f32x16_to_half(p: *mut f16, v: __m512) {
        // SAFETY: the caller has the instruction set, and as many values.
        unsafe { _mm256_storeu_si256(p.cast(), _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v)) }
    }

    #[inline(always)]
    unsafe fn f64x8_to_half(p: *mut f16, v: __m512d) {
        // SAFETY: the caller has the instruction set, and as many values.
        unsafe { f32x8_to_half(p, _mm512_cvtpd_ps(v)) }
    }

    #[inline(always)]
    unsafe fn f32x8_to_half(p: *mut f16, v: __m256) {
        // SAFETY: the caller has the instruction set, and as many values.
        unsafe { _mm_storeu_si128(p.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v)) }
    }

    #[inline(always)]
    unsafe fn f64x4_to_half(p: *mut f16, v: __m256d) {
        // SAFETY: the caller has the instruction set, and as many values.
        unsafe {
            let half = _mm_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_cvtpd_ps(v));
            _mm_storel_epi64(p.cast(), half);
        }
    }

    #[inline(always)]
    unsafe fn sum_f32x8(v: __m256) -> f32 {
        // SAFETY: the caller has the instruction set.
        unsafe {
            let four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }

    #[inline(always)]
    unsafe fn sum_f64x4(v: __m256d) -> f64 {
        // SAFETY: the caller has the instruction set.
        unsafe {
            let two = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd::<1>(v));
            _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
        }
    }

    #[inline(always)]
    unsafe fn turn_f32x8(r: [__m256; 8]) -> [__m256; 8] {
        // SAFETY: the caller has the instruction set.
        unsafe {
            let pairs = [
                _mm256_unpacklo_ps(r[0], r[1]),
                _mm256_unpackhi_ps(r[0], r[1]),
                _mm256_unpacklo_ps(r[2], r[3]),
                _mm256_unpackhi_ps(r[2], r[3]),
                _mm256_unpacklo_ps(r[4], r[5]),
                _mm256_unpackhi_ps(r[4], r[5]),
                _mm256_unpacklo_ps(r[6], r[7]),
                _mm256_unpackhi_ps(r[6], r[7]),
            ];
            let fours = [
                _mm256_shuffle_ps::<0x44>(pairs[0], pairs[2]),
                _mm256_shuffle_ps::<0xEE>(pairs[0], pairs[2]),
                _mm256_shuffle_ps::<0x44>(pairs[1], pairs[3]),
                _mm256_shuffle_ps::<0xEE>(pairs[1], pairs[3]),
                _mm256_shuffle_ps::<0x44>(pairs[4], pairs[6]),
                _mm256_shuffle_ps::<0xEE>(pairs[4], pairs[6]),
                _mm256_shuffle_ps::<0x44>(pairs[5], pairs[7]),
                _mm256_shuffle_ps::<0xEE>(pairs[5], pairs[7]),
            ];
            [
                _mm256_permute2f128_ps::<0x20>(fours[0], fours[4]),
                _mm256_permute2f128_ps::<0x20>(fours[1], fours[5]),
                _mm256_permute2f128_ps::<0x20>(fours[2], fours[6]),
                _mm256_permute2f128_ps::<0x20>(fours[3], fours[7]),
                _mm256_permute2f128_ps::<0x31>(fours[0], fours[4]),
                _mm256_permute2f128_ps::<0x31>(fours[1], fours[5]),
                _mm256_permute2f128_ps::<0x31>(fours[2], fours[6]),
                _mm256_permute2f128_ps::<0x31>(fours[3], fours[7]),
            ]
        }
    }

    #[inline(always)]
    unsafe fn turn_f64x4(r: [__m256d; 4]) -> [__m256d; 4] {
        // SAFETY: the caller has the instruction set.
        unsafe {
            let pairs = [
                _mm256_unpacklo_pd(r[0], r[1]),
                _mm256_unpackhi_pd(r[0], r[1]),
                _mm256_unpacklo_pd(r[2], r[3]),
                _mm256_unpackhi_pd(r[2], r[3]),
            ];
            [
                _mm256_permute2f128_pd::<0x20>(pairs[0], pairs[2]),
                _mm256_permute2f128_pd::<0x20>(pairs[1], pairs[3]),
                _mm256_permute2f128_pd::<0x31>(pairs[0], pairs[2]),
                _mm256_permute2f128_pd::<0x31>(pairs[1], pairs[3]),
            ]
        }
    }

    #[inline(always)]
    unsafe fn turn_f32x16(r: [__m512; 16]) -> [__m512; 16] {
        // SAFETY: the caller has the instruction set.
        unsafe {
            let mut four = r;
            // Squares of four within each quarter of the registers.
            for i in (0..16).step_by(4) {
                let pairs = [
                    _mm512_unpacklo_ps(r[i], r[i + 1]),
                    _mm512_unpackhi_ps(r[i], r[i + 1]),
                    _mm512_unpacklo_ps(r[i + 2], r[i + 3]),
                    _mm512_unpackhi_ps(r[i + 2], r[i + 3]),
                ];
                four[i] = _mm512_shuffle_ps::<0x44>(pairs[0], pairs[2]);
                four[i + 1] = _mm512_shuffle_ps::<0xEE>(pairs[0], pairs[2]);
                four[i + 2] = _mm512_shuffle_ps::<0x44>(pairs[1], pairs[3]);
                four[i + 3] = _mm512_shuffle_ps::<0xEE>(pairs[1], pairs[3]);
            }
            // The quarters themselves.
            let mut out = r;
            for i in 0..4 {
                let low = [
                    _mm512_shuffle_f32x4::<0x88>(four[i], four[i + 4]),
                    _mm512_shuffle_f32x4::<0xDD>(four[i], four[i + 4]),
                ];
                let high = [
                    _mm512_shuffle_f32x4::<0x88>(four[i + 8], four[i + 12]),
                    _mm512_shuffle_f32x4::<0xDD>(four[i + 8], four[i + 12]),
                ];
                out[i] = _mm512_shuffle_f32x4::<0x88>(low[0], high[0]);
                out[i + 4] = _mm512_shuffle_f32x4::<0x88>(low[1], high[1]);
                out[i + 8] = _mm512_shuffle_f32x4::<0xDD>(low[0], high[0]);
                out[i + 12] = _mm512_shuffle_f32x4::<0xDD>(low[1], high[1]);
            }
            out
        }
    }

    #[inline(always)]
    unsafe fn turn_f64x8(r: [__m512d; 8]) -> [__m512d; 8] {
        // SAFETY: the caller has the instruction set.
        unsafe {
            let mut two = r;
            for i in (0..8).step_by(2) {
                two[i] = _mm512_unpacklo_pd(r[i], r[i + 1]);
                two[i + 1] = _mm512_unpackhi_pd(r[i], r[i + 1]);
            }
            let mut out = r;
            for i in 0..2 {
                let low = [
                    _mm512_shuffle_f64x2::<0x88>(two[i], two[i + 2]),
                    _mm512_shuffle_f64x2::<0xDD>(two[i], two[i + 2]),
                ];
                let high = [
                    _mm512_shuffle_f64x2::<0x88>(two[i + 4], two[i + 6]),
                    _mm512_shuffle_f64x2::<0xDD>(two[i + 4], two[i + 6]),
                ];
                out[i] = _mm512_shuffle_f64x2::<0x88>(low[0], high[0]);
                out[i + 2] = _mm512_shuffle_f64x2::<0x88>(low[1], high[1]);
                out[i + 4] = _mm512_shuffle_f64x2::<0xDD>(low[0], high[0]);
                out[i + 6] = _mm512_shuffle_f64x2::<0xDD>(low[1], high[1]);
            }
            out
        }
    }

    macro_rules! vector {
        ($name:ident, $t:ident, $register:ident, $lanes:literal,
         $splat:ident, $load:ident, $store:ident, $fma:ident, $sub:ident, $add:ident, $abs:expr,
         $load_half:ident, $store_half:ident, $sum:ident $(, $turn:ident)?) => {
            #[derive(Debug, Clone, Copy)]
            pub struct $name($register);

            impl Vector<$t> for $name {
                const LANES: usize = $lanes;

                #[inline(always)]
                unsafe fn splat(value: $t) -> Self {
                    // SAFETY: the caller has the instruction set.
                    $name(unsafe { $splat(value) })
                }
                #[inline(always)]
                unsafe fn load(values: &[$t]) -> Self {
                    debug_assert!(values.len() >= $lanes);
                    // SAFETY: the slice has enough values, says the caller.
                    $name(unsafe { $load(values.as_ptr()) })
                }
                #[inline(always)]
                unsafe fn load_half(values: &[f16]) -> Self {
                    debug_assert!(values.len() >= $lanes);
                    // SAFETY: the slice has enough values, says the caller.
                    $name(unsafe { $load_half(values.as_ptr()) })
                }
                #[inline(always)]
                unsafe fn store(self, values: &mut [$t]) {
                    debug_assert!(values.len() >= $lanes);
                    // SAFETY: the slice has enough values, says the caller.
                    unsafe { $store(values.as_mut_ptr(), self.0) }
                }
                #[inline(always)]
                unsafe fn store_half(self, values: &mut [f16]) {
                    debug_assert!(values.len() >= $lanes);
                    // SAFETY: the slice has enough values, says the caller.
                    unsafe { $store_half(values.as_mut_ptr(), self.0) }
                }
                #[inline(always)]
                unsafe fn add_product(self, a: Self, b: Self) -> Self {
                    // SAFETY: the caller has the instruction set.
                    $name(unsafe { $fma(a.0, b.0, self.0) })
                }
                #[inline(always)]
                unsafe fn add_distance(self, a: Self, b: Self) -> Self {
                    // SAFETY: the caller has the instruction set.
                    $name(unsafe { $add(self.0, $abs($sub(a.0, b.0))) })
                }
                #[inline(always)]
                unsafe fn sum(self) -> $t {
                    // SAFETY: the caller has the instruction set.
                    unsafe { $sum(self.0) }
                }
                $(
                    #[inline(always)]
                    unsafe fn turn(square: &mut [Self]) {
                        let mut rows = [square[0].0; $lanes];
                        for (row, register) in rows.iter_mut().zip(square.iter()) {
                            *row = register.0;
                        }
                        // SAFETY: the caller has the instruction set.
                        let turned = unsafe { $turn(rows) };
                        for (register, row) in square.iter_mut().zip(turned) {
                            *register = $name(row);
                        }
                    }
                )?
            }
        };
    }

    vector!(
        F32x16,
        f32,
        __m512,
        16,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_fmadd_ps,
        _mm512_sub_ps,
        _mm512_add_ps,
        |v| _mm512_abs_ps(v),
        half_to_f32x16,
        f32x16_to_half,
        _mm512_reduce_add_ps,
        turn_f32x16
    );
    vector!(
        F64x8,
        f64,
        __m512d,
        8,
        _mm512_set1_pd,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_fmadd_pd,
        _mm512_sub_pd,
        _mm512_add_pd,
        |v| _mm512_abs_pd(v),
        half_to_f64x8,
        f64x8_to_half,
        _mm512_reduce_add_pd,
        turn_f64x8
    );
    vector!(
        F32x8,
        f32,
        __m256,
        8,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_fmadd_ps,
        _mm256_sub_ps,
        _mm256_add_ps,
        |v| _mm256_andnot_ps(_mm256_set1_ps(-0.0), v),
        half_to_f32x8,
        f32x8_to_half,
        sum_f32x8,
        turn_f32x8
    );
    vector!(
        F64x4,
        f64,
        __m256d,
        4,
        _mm256_set1_pd,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_fmadd_pd,
        _mm256_sub_pd,
        _mm256_add_pd,
        |v| _mm256_andnot_pd(_mm256_set1_pd(-0.0), v),
        half_to_f64x4,
        f64x4_to_half,
        sum_f64x4,
        turn_f64x4
    );
}
