//! .NET's generator, so that a run of the article's can be met to the digit.

/// .NET's `Random` with a seed.
///
/// # Source
///
/// Knuth's subtractive generator (*The Art of Computer Programming*, volume 2, section 3.2.2, as published in *Numerical
/// Recipes*, `ran3`), with the lag of 21 that .NET keeps.
#[derive(Clone, Debug)]
pub struct NetRandom {
    table: [i32; 55],
    next: usize,
    lagged: usize,
}

impl NetRandom {
    const MODULUS: i32 = i32::MAX;
    const SEED: i32 = 161_803_398;

    /// The generator of that seed. A negative one counts as positive, as in .NET.
    pub fn new(seed: i32) -> Self {
        let mut table = [0i32; 55];
        let mut last = Self::SEED.wrapping_sub(seed.checked_abs().unwrap_or(i32::MAX));
        let mut value = 1;
        table[54] = last;
        for step in 1..55 {
            let place = 21 * step % 55 - 1;
            table[place] = value;
            value = Self::difference(last, value);
            last = table[place];
        }
        for _ in 0..4 {
            for place in 0..55 {
                table[place] = Self::difference(table[place], table[(place + 31) % 55]);
            }
        }
        Self { table, next: 0, lagged: 21 }
    }

    /// The next number of at least 0 and below 1.
    pub fn next_double(&mut self) -> f64 {
        let mut drawn = Self::difference(self.table[self.next], self.table[self.lagged]);
        if drawn == Self::MODULUS {
            drawn -= 1;
        }
        self.table[self.next] = drawn;
        self.next = (self.next + 1) % 55;
        self.lagged = (self.lagged + 1) % 55;
        f64::from(drawn) * (1.0 / f64::from(Self::MODULUS))
    }

    fn difference(left: i32, right: i32) -> i32 {
        let difference = left.wrapping_sub(right);
        if difference < 0 { difference.wrapping_add(Self::MODULUS) } else { difference }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_dot_nets() {
        let first = |seed| NetRandom::new(seed).next_double();
        assert!((first(0) - 0.726_243_269_967_96).abs() < 1e-14);
        assert!((first(42) - 0.668_106_465_911_54).abs() < 1e-14);
        assert!((first(-42) - first(42)).abs() < f64::EPSILON);
    }
}
