//! One line: its label, its pairs of index and value.

use std::ops::Range;

use crate::data::text::{self, Problem, shown};
use crate::linalg::Scalar;

pub(super) fn is_row(line: &[u8]) -> bool {
    !without_comment(line).is_empty()
}

pub(super) fn without_comment(line: &[u8]) -> &[u8] {
    line.split(|&byte| byte == b'#')
        .next()
        .unwrap_or(line)
        .trim_ascii()
}

/// The lines that are rows, without their comments, each with its place in the text.
pub(super) fn rows_of(text: &[u8], chunk: Range<usize>) -> impl Iterator<Item = (usize, &[u8])> {
    let start = chunk.start;
    text::lines(&text[chunk])
        .map(move |(at, line)| (start + at, without_comment(line)))
        .filter(|(_, line)| !line.is_empty())
}

pub(super) fn tokens(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|token| !token.is_empty())
}

/// Calls `feature(index, value, at)` for each pair of a line and returns the
/// label, if the line has one.
pub(super) fn parse_line<'a>(
    line: &'a [u8],
    at: usize,
    feature: &mut impl FnMut(u64, &'a [u8], usize) -> Result<(), Problem>,
) -> Result<Option<&'a [u8]>, Problem> {
    let mut label = None;
    for (i, token) in tokens(line).enumerate() {
        let Some(colon) = token.iter().position(|&byte| byte == b':') else {
            if i == 0 {
                label = Some(token);
                continue;
            }
            let message = format!(
                "'{}' is not of the form index:value; correct the line",
                shown(token)
            );
            return Err(Problem::new(at, message));
        };
        let (index, value) = (&token[..colon], &token[colon + 1..]);
        if index == b"qid" {
            continue;
        }
        let Some(index) = text::parse::<u64>(index).filter(|&index| index < u64::MAX) else {
            let message = format!(
                "'{}' is not an index; correct '{}'",
                shown(index),
                shown(token)
            );
            return Err(Problem::new(at, message));
        };
        feature(index, value, at)?;
    }
    Ok(label)
}

pub(super) fn parse_value<T: Scalar>(index: u64, value: &[u8], at: usize) -> Result<T, Problem> {
    let problem = |what: &str, remedy: &str| {
        let message = format!(
            "the value '{}' of index {index} is {what}; {remedy}correct it",
            shown(value)
        );
        Problem::new(at, message)
    };
    match text::parse::<T>(value) {
        Some(number) if number.is_finite() => Ok(number),
        Some(_) => {
            let number = text::parse(value).unwrap_or(f64::NAN);
            let (what, remedy) = text::not_finite(number);
            Err(problem(what, remedy))
        }
        None => Err(problem("not a number", "")),
    }
}

pub(super) fn refuse_duplicates(line: &[u8], at: usize) -> Result<(), Problem> {
    let mut indices = Vec::new();
    parse_line(line, at, &mut |index, _, _| {
        indices.push(index);
        Ok(())
    })?;
    indices.sort_unstable();
    match indices.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            let message = format!("the index {} occurs twice; keep one", pair[0]);
            Err(Problem::new(at, message))
        }
        None => Ok(()),
    }
}
