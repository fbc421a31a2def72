//! The operations as every processor has them: one number after the other, or as the compiler has it.

use super::{LANES, Simd, SimdKernel, Sixteen};

/// No feature is needed.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Plain;

#[inline(always)]
fn each(a: Sixteen, b: Sixteen, of: impl Fn(f32, f32) -> f32) -> Sixteen {
    std::array::from_fn(|lane| of(a[lane], b[lane]))
}

impl Simd for Plain {
    type Numbers = Sixteen;
    type Doubles = [f64; LANES];

    #[inline(always)]
    fn run<K: SimdKernel>(self, kernel: K) -> K::Output {
        kernel.run::<Plain, false>(self)
    }

    #[inline(always)]
    fn splat(self, number: f32) -> Sixteen {
        [number; LANES]
    }

    #[inline(always)]
    fn load(self, from: &Sixteen) -> Sixteen {
        *from
    }

    #[inline(always)]
    fn store(self, numbers: Sixteen, to: &mut Sixteen) {
        *to = numbers;
    }

    #[inline(always)]
    fn multiply_add(self, a: Sixteen, b: Sixteen, mut c: Sixteen) -> Sixteen {
        for lane in 0..LANES {
            c[lane] = a[lane].mul_add(b[lane], c[lane]);
        }
        c
    }

    #[inline(always)]
    fn multiply(self, a: Sixteen, b: Sixteen) -> Sixteen {
        each(a, b, |a, b| a * b)
    }

    #[inline(always)]
    fn subtract(self, a: Sixteen, b: Sixteen) -> Sixteen {
        each(a, b, |a, b| a - b)
    }

    #[inline(always)]
    fn larger(self, a: Sixteen, b: Sixteen) -> Sixteen {
        each(a, b, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn larger_size(self, a: Sixteen, b: Sixteen) -> Sixteen {
        let size = |number: f32| number.to_bits() & !(1 << 31);
        each(a, b, |a, b| f32::from_bits(size(a).max(size(b))))
    }

    #[inline(always)]
    fn raise(self, number: Sixteen, exponent: Sixteen) -> Sixteen {
        each(number, exponent, |number, exponent| {
            f32::from_bits(number.to_bits().wrapping_add(exponent.to_bits() << 23))
        })
    }

    #[inline(always)]
    fn zeros(self) -> [f64; LANES] {
        [0.0; LANES]
    }

    #[inline(always)]
    fn add(self, mut sums: [f64; LANES], numbers: Sixteen) -> [f64; LANES] {
        for lane in 0..LANES {
            sums[lane] += f64::from(numbers[lane]);
        }
        sums
    }

    #[inline(always)]
    fn store_doubles(self, doubles: [f64; LANES], to: &mut [f64; LANES]) {
        *to = doubles;
    }

    #[inline(always)]
    fn scale(self, numbers: Sixteen, factor: f64) -> Sixteen {
        numbers.map(|number| (f64::from(number) * factor) as f32)
    }
}
