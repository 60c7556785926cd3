//! Mean, standard deviation and quantiles, with the results of NumPy to the last bit.

/// Number of values that [`sum`] adds without dividing them.
const LARGEST_PART: usize = 128;

/// The sum, added in pairs as NumPy does, so that rounding errors stay small.
fn sum(values: &[f64]) -> f64 {
    if values.len() < 8 {
        return values.iter().fold(-0.0, |sum, value| sum + value);
    }
    if values.len() > LARGEST_PART {
        let half = values.len() / 2;
        let (first, second) = values.split_at(half - half % 8);
        return sum(first) + sum(second);
    }
    let mut lanes = [0.0; 8];
    lanes.copy_from_slice(&values[..8]);
    let rest = values[8..].chunks_exact(8);
    let last = rest.remainder();
    for eight in rest {
        lanes.iter_mut().zip(eight).for_each(|(lane, value)| *lane += value);
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    last.iter().fold(((a + b) + (c + d)) + ((e + f) + (g + h)), |sum, value| sum + value)
}

/// The mean of at least one value.
pub(super) fn mean(values: &[f64]) -> f64 {
    sum(values) / values.len() as f64
}

/// The standard deviation of at least one value.
pub(super) fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: Vec<f64> = values.iter().map(|value| (value - mean) * (value - mean)).collect();
    self::mean(&squares).sqrt()
}

/// A quantile of ordered values, interpolated linearly; `None` without values.
pub(super) fn quantile(ordered: &[f64], percent: f64) -> Option<f64> {
    let last = ordered.len().checked_sub(1)?;
    let at = last as f64 * (percent / 100.0);
    let below = at as usize;
    let (low, high) = (ordered[below], ordered[(below + 1).min(last)]);
    let share = at - below as f64;
    Some(if share < 0.5 { low + (high - low) * share } else { high - (high - low) * (1.0 - share) })
}

/// The values in ascending order.
pub(super) fn ordered(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_interpolated() {
        // For the numbers 1 to 101, quantile p is 1 + p.
        let numbers: Vec<f64> = (1..=101).map(f64::from).collect();
        assert_eq!(quantile(&numbers, 5.0), Some(6.0));
        assert_eq!(quantile(&numbers, 99.0), Some(100.0));
        assert_eq!(quantile(&[1.0, 2.0], 25.0), Some(1.25));
        assert_eq!(quantile(&[1.0, 2.0], 75.0), Some(1.75));
        assert_eq!(quantile(&[], 50.0), None);
    }

    #[test]
    fn sums_of_any_length_have_all_values() {
        for count in [0, 1, 7, 8, 9, 127, 128, 129, 1_000, 10_000] {
            let numbers: Vec<f64> = (1..=count).map(f64::from).collect();
            assert_eq!(sum(&numbers), f64::from(count) * f64::from(count + 1) / 2.0);
        }
    }

    #[test]
    fn the_deviation_of_a_pair_is_half_its_distance() {
        assert_eq!((mean(&[2.0, 6.0]), deviation(&[2.0, 6.0])), (4.0, 2.0));
    }
}
