//! Words for numbers of things.

/// A number with the singular or the plural, such as `1 byte` or `1,200 packets`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// A number with commas between thousands.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_thing_is_singular_and_thousands_have_commas() {
        assert_eq!(
            [0, 1, 2, 999, 1000, 11755, 1_000_000].map(|count| counted(count, "byte", "bytes")),
            [
                "0 bytes",
                "1 byte",
                "2 bytes",
                "999 bytes",
                "1,000 bytes",
                "11,755 bytes",
                "1,000,000 bytes"
            ]
        );
    }
}
