//! A seeded generator whose sequence never changes, so that a seed printed by a failing run replays for ever.
//! Must not be used where unpredictability matters.

/// `SplitMix64`: small, well mixed, and ours, so no upgrade of a dependency changes what a seed means.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The sequence of one seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The sequence of one seed and a number within it; independent of how many others were drawn before.
    pub fn nth(seed: u64, number: u64) -> Self {
        Self(Self(seed ^ number.wrapping_mul(0xA24B_AED4_963E_E407)).next_u64())
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if `bound` is 0. The bias is below 2^-32 for the bounds that tests use.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next_u64() % bound }
    }

    /// A number in `0.0 .. 1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
