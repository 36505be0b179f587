//! Sizes and bandwidths as people write them: "64KiB", "200GB", "450MB/s".

const UNITS: [(&str, u64); 9] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// The largest size that is believed; beyond it an `f64` no longer counts bytes.
const BYTES_MAX: f64 = (1u64 << 53) as f64;

/// Reads a number of bytes: a number, then an optional unit.
///
/// # Errors
/// A sentence that says what was expected.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic() && c != 'e' && c != 'E');
    let (number, unit) = text.split_at(split.unwrap_or(text.len()));
    let expected = "write a number and a unit: B, kB, MB, GB, TB (powers of 1000) or KiB, MiB, \
                    GiB, TiB (powers of 1024)";
    let value: f64 =
        number.trim().parse().map_err(|_| format!("\"{text}\" is not a size; {expected}"))?;
    let unit = unit.trim();
    let factor = match UNITS.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => *factor as f64,
        None if unit.is_empty() => 1.0,
        None if unit == "KB" => 1_000.0,
        None => return Err(format!("\"{text}\" has an unknown unit \"{unit}\"; {expected}")),
    };
    let bytes = value * factor;
    if bytes.is_nan() || bytes < 0.0 {
        return Err(format!("\"{text}\" is not a size: it must not be negative"));
    }
    if bytes > BYTES_MAX {
        return Err(format!("\"{text}\" is more than any storage has"));
    }
    Ok(bytes.round() as u64)
}

/// Reads a bandwidth in bytes a second: as [`parse_bytes`], with an optional "/s".
///
/// # Errors
/// A sentence that says what was expected.
pub fn parse_bandwidth(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let bytes = parse_bytes(text.strip_suffix("/s").unwrap_or(text))?;
    if bytes == 0 {
        return Err(format!("\"{text}\" is no bandwidth: it must be more than 0 bytes a second"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_bytes("200GB"), Ok(200_000_000_000));
        assert_eq!(parse_bytes(" 64 KiB "), Ok(65_536));
        assert_eq!(parse_bytes("1.5MiB"), Ok(1_572_864));
        assert_eq!(parse_bytes("1e9"), Ok(1_000_000_000));
        assert_eq!(parse_bytes("17"), Ok(17));
        assert_eq!(parse_bytes("0"), Ok(0));
    }

    #[test]
    fn bandwidths() {
        assert_eq!(parse_bandwidth("450MB/s"), Ok(450_000_000));
        assert_eq!(parse_bandwidth("9.4MB/s"), Ok(9_400_000));
        assert_eq!(parse_bandwidth("1000"), Ok(1000));
        assert!(parse_bandwidth("0MB/s").unwrap_err().contains("more than 0"));
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        assert!(parse_bytes("-1GB").unwrap_err().contains("negative"));
        assert!(parse_bytes("12 parsecs").unwrap_err().contains("parsecs"));
        assert!(parse_bytes("fast").unwrap_err().contains("write a number"));
        assert!(parse_bytes("1e300TB").unwrap_err().contains("more than any"));
        assert!(parse_bytes("").is_err());
    }
}
