//! How programs say what bandwidth an I/O task asks for: `"20MB/s"`, or how it is to be found:
//! `"auto"`, `"auto(min,max,delta)"`, `"adaptive"`; and what was found, by name.

use std::sync::Arc;

use sched::{Bounds, Sched, Tuned, Tuning};

use crate::storage::parse_bandwidth;

const FORMS: &str =
    "write \"auto\", \"auto(min,max,delta)\" such as \"auto(2MB/s,256MB/s,2)\", or \
                     \"adaptive\"";
/// Steps beyond this would leave nothing to learn.
const DELTA_MAX: f64 = 1000.0;

/// What an I/O task asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// So many bytes a second.
    Bandwidth(u64),
    /// What is found to be best.
    Found(Tuning),
}

/// Reads what bandwidth an I/O task asks for: an amount, or how it is to be found.
///
/// # Errors
/// A sentence that says what was expected.
pub fn parse_ask(text: &str) -> Result<Ask, String> {
    match ["auto", "adaptive"].iter().any(|word| text.trim_start().starts_with(word)) {
        true => parse_tuning(text).map(Ask::Found),
        false => parse_bandwidth(text).map(Ask::Bandwidth),
    }
}

/// Reads how a bandwidth is to be found.
///
/// # Errors
/// A sentence that says what was expected.
pub fn parse_tuning(text: &str) -> Result<Tuning, String> {
    let text = text.trim();
    if text == "adaptive" {
        return Ok(Tuning::Adaptive);
    }
    let rest = text.strip_prefix("auto").ok_or_else(|| format!("\"{text}\": {FORMS}"))?.trim();
    if rest.is_empty() {
        return Ok(Tuning::Auto { bounds: None });
    }
    let inner = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let parts: Vec<&str> = inner.map(|inner| inner.split(',').collect()).unwrap_or_default();
    let [min, max, delta] = parts[..] else { return Err(format!("\"{text}\": {FORMS}")) };
    let (min, max) = (parse_bandwidth(min)?, parse_bandwidth(max)?);
    let delta: f64 = delta
        .trim()
        .parse()
        .map_err(|_| format!("\"{text}\": delta is a number above 1, such as 2"))?;
    if min > max {
        return Err(format!("\"{text}\": min is more than max"));
    }
    if !(delta > 1.0 && delta <= DELTA_MAX) {
        return Err(format!(
            "\"{text}\": delta, by which a value is multiplied to get the next, has to be above 1 \
             and at most {DELTA_MAX}"
        ));
    }
    let bounds = Bounds::new(min, max, (delta * 1000.0).round() as u32);
    let bounds = bounds.ok_or_else(|| format!("\"{text}\": delta is too near to 1"))?;
    Ok(Tuning::Auto { bounds: Some(bounds) })
}

/// What tuning does for one function on one layer.
#[derive(Clone, Debug)]
pub struct TunedStatistics {
    /// The name of the function.
    pub function: Arc<str>,
    /// What it does.
    pub tuned: Tuned,
}

impl TunedStatistics {
    /// Of all functions and layers that tuning has met.
    pub(crate) fn all(sched: &Sched) -> Vec<TunedStatistics> {
        let named = |tuned: Tuned| {
            let function = sched.function_name(tuned.function)?.clone();
            Some(TunedStatistics { function, tuned })
        };
        sched.tuned().into_iter().filter_map(named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_are_read() {
        assert_eq!(parse_tuning(" adaptive "), Ok(Tuning::Adaptive));
        assert_eq!(parse_tuning("auto"), Ok(Tuning::Auto { bounds: None }));
        let bounds = Bounds::new(2_000_000, 256_000_000, 1500);
        assert!(bounds.is_some());
        for text in ["auto(2MB/s,256MB/s,1.5)", "auto( 2000000 , 256MB, 1.5 )"] {
            assert_eq!(parse_tuning(text), Ok(Tuning::Auto { bounds }), "{text}");
        }
    }

    #[test]
    fn an_amount_or_a_way_to_find_it_is_asked_for() {
        assert_eq!(parse_ask("20MB/s"), Ok(Ask::Bandwidth(20_000_000)));
        assert_eq!(parse_ask(" auto"), Ok(Ask::Found(Tuning::Auto { bounds: None })));
        assert_eq!(parse_ask("adaptive"), Ok(Ask::Found(Tuning::Adaptive)));
        for (text, reason) in [("autos", "write \"auto\""), ("fast", "a number"), ("0", "more")] {
            assert!(parse_ask(text).expect_err(text).contains(reason), "{text}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_reason() {
        for (text, reason) in [
            ("automatic", "write \"auto\""),
            ("auto()", "write \"auto\""),
            ("auto(1MB,2MB)", "write \"auto\""),
            ("auto(1MB,2MB,2", "write \"auto\""),
            ("auto(3MB,2MB,2)", "min is more than max"),
            ("auto(1MB,2MB,1)", "above 1"),
            ("auto(1MB,2MB,1.0001)", "too near"),
            ("auto(1MB,2MB,NaN)", "above 1"),
            ("auto(1MB,2MB,-2)", "above 1"),
            ("auto(0,2MB,2)", "more than 0"),
            ("auto(-1,2MB,2)", "not be negative"),
            ("auto(1XB,2MB,2)", "unknown unit"),
            ("20MB/s", "write \"auto\""),
        ] {
            let refused = parse_tuning(text).expect_err(text);
            assert!(refused.contains(reason), "{text}: {refused}");
        }
    }
}
