//! The values of a layer's keys, each checked by itself; a refusal has its place.

use std::collections::BTreeSet;
use std::ops::Range;

use ops::{Curve, Point};
use toml::de::{DeArray, DeValue};
use toml::Spanned;

use super::units::{parse_bandwidth, parse_bytes};
use super::Scope;

/// A message and the bytes of the text that it is about.
pub(super) type Refused = (Range<usize>, String);
/// A key and its value.
pub(super) type Entry<'a, 'i> = (&'a Spanned<std::borrow::Cow<'i, str>>, &'a Spanned<DeValue<'i>>);

/// The largest number of a processor that is believed.
const PROCESSOR_MAX: usize = 65_535;

pub(super) fn text<'a>((key, value): Entry<'a, '_>) -> Result<&'a str, Refused> {
    let text = value.get_ref().as_str();
    text.filter(|text| !text.is_empty()).ok_or_else(|| {
        (value.span(), format!("{} must be a text that is not empty", key.get_ref()))
    })
}

fn amount(
    (key, value): Entry<'_, '_>,
    parse: fn(&str) -> Result<u64, String>,
) -> Result<u64, Refused> {
    let number = match value.get_ref() {
        DeValue::String(text) => parse(text),
        DeValue::Integer(integer) if integer.radix() == 10 => parse(integer.as_str()),
        DeValue::Float(float) => parse(float.as_str()),
        _ => Err("write a number or a text such as \"450MB/s\" or \"200GB\"".to_string()),
    };
    number.map_err(|message| (value.span(), format!("{}: {message}", key.get_ref())))
}

pub(super) fn bandwidth(entry: Entry<'_, '_>) -> Result<u64, Refused> {
    amount(entry, parse_bandwidth)
}

pub(super) fn capacity(entry: Entry<'_, '_>) -> Result<u64, Refused> {
    match amount(entry, parse_bytes)? {
        0 => Err((entry.1.span(), "capacity: it must be more than 0 bytes".to_string())),
        bytes => Ok(bytes),
    }
}

/// A share of a layer, in thousandths.
pub(super) fn share((key, value): Entry<'_, '_>) -> Result<u32, Refused> {
    let refused = |why: &str| (value.span(), format!("{}: {why}", key.get_ref()));
    let text = value.get_ref().as_str().and_then(|text| text.trim().strip_suffix('%'));
    let percent = text.and_then(|text| text.trim().parse::<f64>().ok());
    let percent = percent.ok_or_else(|| refused("write a share such as \"90%\""))?;
    match (0.0..=100.0).contains(&percent) {
        true => Ok((percent * 10.0).round() as u32),
        false => Err(refused("it must be from 0% to 100%")),
    }
}

pub(super) fn scope(value: &Spanned<DeValue<'_>>) -> Result<Scope, Refused> {
    match value.get_ref().as_str() {
        Some("node") => Ok(Scope::Node),
        Some("shared") => Ok(Scope::Shared),
        _ => Err((value.span(), "scope: write \"node\" or \"shared\"".to_string())),
    }
}

/// A rate, or a list of points.
pub(super) fn curve(entry: Entry<'_, '_>) -> Result<Curve, Refused> {
    let (key, value) = entry;
    let Some(list) = value.get_ref().as_array() else { return bandwidth(entry).map(Curve::flat) };
    let points = list.iter().map(|value| point(key.get_ref(), value));
    Curve::new(points.collect::<Result<_, _>>()?).map_err(|error| {
        let place = error.point().and_then(|point| list.get(point));
        (place.map_or(value.span(), |point| point.span()), format!("{}: {error}", key.get_ref()))
    })
}

/// A list of points. One rate for any number of writers was measured with none of them.
pub(super) fn measured(entry: Entry<'_, '_>) -> Result<Curve, Refused> {
    match entry.1.get_ref().as_array() {
        Some(_) => curve(entry),
        None => Err((entry.1.span(), "measured: write a list of points".to_string())),
    }
}

fn point(of: &str, value: &Spanned<DeValue<'_>>) -> Result<Point, Refused> {
    let form = format!("{of}: a point is written {{writers = 4, bandwidth = \"450MB/s\"}}");
    let Some(table) = value.get_ref().as_table() else {
        return Err((value.span(), form));
    };
    let (mut writers, mut total) = (None, None);
    for entry in table {
        let (key, value) = entry;
        match key.get_ref().as_ref() {
            "writers" => writers = Some(count(of, value)?),
            "bandwidth" => total = Some(bandwidth(entry)?),
            other => return Err((key.span(), format!("unknown key \"{other}\"; {form}"))),
        }
    }
    match (writers, total) {
        (Some(writers), Some(bandwidth)) => Ok(Point { writers, bandwidth }),
        _ => Err((value.span(), form)),
    }
}

/// The digits of a whole number. As hexadecimal or the like, they would be another number.
fn decimal<'a>(value: &'a Spanned<DeValue<'_>>) -> Option<&'a str> {
    let number = value.get_ref().as_integer().filter(|number| number.radix() == 10);
    number.map(|number| number.as_str())
}

fn count(of: &str, value: &Spanned<DeValue<'_>>) -> Result<u32, Refused> {
    let number = decimal(value).and_then(|number| number.parse().ok());
    number.ok_or_else(|| (value.span(), format!("{of}: writers must be a number from 1")))
}

/// A text such as "0-3,8", or a list of numbers.
pub(super) fn processors(value: &Spanned<DeValue<'_>>) -> Result<Vec<usize>, Refused> {
    match value.get_ref() {
        DeValue::String(text) => {
            parse_processors(text).map_err(|why| (value.span(), format!("processors: {why}")))
        }
        DeValue::Array(list) => processor_list(list, value.span()),
        _ => Err((value.span(), "processors: write \"0-3,8\" or a list of numbers".to_string())),
    }
}

fn processor_list(list: &DeArray<'_>, at: Range<usize>) -> Result<Vec<usize>, Refused> {
    let mut found = BTreeSet::new();
    for value in list.iter() {
        let number = parse_processors(decimal(value).unwrap_or("?")).map(|one| one[0]);
        match number.map(|number| (number, found.insert(number))) {
            Ok((_, true)) => {}
            Ok((number, false)) => {
                return Err((value.span(), format!("processors: {number} is there twice")));
            }
            Err(_) => {
                let why = format!("processors: a number from 0 to {PROCESSOR_MAX} is expected");
                return Err((value.span(), why));
            }
        }
    }
    if found.is_empty() {
        return Err((at, "processors: the list is empty; leave the key out".to_string()));
    }
    Ok(found.into_iter().collect())
}

/// Numbers and ranges, as `taskset` and `/sys` write them.
fn parse_processors(text: &str) -> Result<Vec<usize>, String> {
    let expected = format!("write numbers up to {PROCESSOR_MAX} and ranges, such as \"0-3,8\"");
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| digits && *number <= PROCESSOR_MAX);
        number.ok_or_else(|| format!("\"{text}\" is no number of a processor; {expected}"))
    };
    let mut found = BTreeSet::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first.trim())?, number(last.trim())?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return Err(format!("the range \"{part}\" ends before it begins"));
        }
        for processor in first..=last {
            if !found.insert(processor) {
                return Err(format!("{processor} is there twice"));
            }
        }
    }
    Ok(found.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_numbers_and_ranges() {
        assert_eq!(parse_processors("8, 0-3"), Ok(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_processors("5"), Ok(vec![5]));
        for (bad, part) in [
            ("", "no number"),
            ("0-", "no number"),
            ("+1", "no number"),
            ("65536", "no number"),
            ("3-1", "ends before"),
            ("0-3,2", "2 is there twice"),
        ] {
            assert!(parse_processors(bad).unwrap_err().contains(part), "{bad}");
        }
    }
}
