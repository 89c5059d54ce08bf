//! The values of a column: numbers for features, texts for labels.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal32Type, Decimal64Type, Decimal128Type, DecimalType, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, PrimitiveArray};
use arrow_schema::DataType;

use crate::data::text::{self, shown};
use crate::linalg::Scalar;

/// What a column can serve for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// One number a row.
    Numbers,
    /// Lists of numbers, of any or of one length.
    Lists(Option<usize>),
    /// One text a row.
    Text,
    /// None of these; how its type is called.
    Other(String),
}

impl Kind {
    pub(super) fn of(data_type: &DataType) -> Self {
        let numbers = |item: &DataType| Self::of(item) == Kind::Numbers;
        match data_type {
            DataType::Dictionary(_, values) => Self::of(values),
            DataType::Boolean | DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                Kind::Numbers
            }
            DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) => {
                Kind::Numbers
            }
            integer if integer.is_integer() => Kind::Numbers,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::Text,
            DataType::List(item) | DataType::LargeList(item) if numbers(item.data_type()) => {
                Kind::Lists(None)
            }
            DataType::FixedSizeList(item, length) if numbers(item.data_type()) => {
                Kind::Lists(Some(usize::try_from(*length).unwrap_or(0)))
            }
            other => Kind::Other(shown(other.to_string().as_bytes())),
        }
    }
}

/// What is wrong in which row, counted from 0.
#[derive(Debug, PartialEq)]
pub(super) struct Trouble {
    pub(super) row: usize,
    pub(super) problem: String,
}

impl Trouble {
    pub(super) fn new(row: usize, problem: impl Into<String>) -> Self {
        let problem = problem.into();
        Self { row, problem }
    }
}

/// The numbers of a column row by row: one for each, or `width` if they are in lists.
pub(super) fn numbers<T: Scalar>(array: &dyn Array, width: usize) -> Result<Vec<T>, Trouble> {
    if let Some(item) = list_items(array, width)? {
        return match plain_numbers(item.as_ref()) {
            Err(Trouble { row, problem }) => Err(Trouble::new(row / width, problem)),
            numbers => numbers,
        };
    }
    plain_numbers(array)
}

/// The values of all lists one after the other, if the column is of lists; `width` of them
/// for each.
fn list_items(array: &dyn Array, width: usize) -> Result<Option<arrow_array::ArrayRef>, Trouble> {
    let (items, first) = match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            refuse_nulls(array)?;
            same_length(list.offsets().lengths(), width)?;
            (
                list.values(),
                list.value_offsets().first().map_or(0, |&o| o as usize),
            )
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            refuse_nulls(array)?;
            same_length(list.offsets().lengths(), width)?;
            (
                list.values(),
                list.value_offsets().first().map_or(0, |&o| o as usize),
            )
        }
        DataType::FixedSizeList(..) => {
            refuse_nulls(array)?;
            let list = array.as_fixed_size_list();
            (list.values(), list.value_offset_at(0))
        }
        _ => return Ok(None),
    };
    Ok(Some(items.slice(first, array.len() * width)))
}

fn same_length(lengths: impl Iterator<Item = usize>, width: usize) -> Result<(), Trouble> {
    for (row, length) in lengths.enumerate() {
        if length != width {
            let problem = format!(
                "the list has {length} numbers, and others have {width}; give all the same, or \
                 drop the row"
            );
            return Err(Trouble::new(row, problem));
        }
    }
    Ok(())
}

fn refuse_nulls(array: &dyn Array) -> Result<(), Trouble> {
    let nulls = array.logical_nulls();
    match nulls.and_then(|nulls| nulls.iter().position(|valid| !valid)) {
        Some(row) => Err(Trouble::new(
            row,
            "there is no value; fill it in or drop the row",
        )),
        None => Ok(()),
    }
}

fn plain_numbers<T: Scalar>(array: &dyn Array) -> Result<Vec<T>, Trouble> {
    refuse_nulls(array)?;
    let raw = raw_numbers(array);
    if raw.len() != array.len() {
        let problem = format!("{} is no type of numbers", array.data_type());
        return Err(Trouble::new(0, problem));
    }
    let mut out = Vec::with_capacity(raw.len());
    for (row, &number) in raw.iter().enumerate() {
        let value = T::from_f64(number);
        if !value.is_finite() {
            let (what, remedy) = text::not_finite(number);
            let problem = format!("'{number}' is {what}; {remedy}replace it or drop the row");
            return Err(Trouble::new(row, problem));
        }
        out.push(value);
    }
    Ok(out)
}

/// All values as they are, whatever stands where there is none; nothing if the type has no
/// numbers.
fn raw_numbers(array: &dyn Array) -> Vec<f64> {
    match array.data_type() {
        DataType::Boolean => {
            let values = array.as_boolean().values();
            values
                .iter()
                .map(|value| f64::from(u8::from(value)))
                .collect()
        }
        DataType::Int8 => raw::<Int8Type>(array, f64::from),
        DataType::Int16 => raw::<Int16Type>(array, f64::from),
        DataType::Int32 => raw::<Int32Type>(array, f64::from),
        DataType::Int64 => raw::<Int64Type>(array, |value| value as f64),
        DataType::UInt8 => raw::<UInt8Type>(array, f64::from),
        DataType::UInt16 => raw::<UInt16Type>(array, f64::from),
        DataType::UInt32 => raw::<UInt32Type>(array, f64::from),
        DataType::UInt64 => raw::<UInt64Type>(array, |value| value as f64),
        DataType::Float16 => raw::<Float16Type>(array, f64::from),
        DataType::Float32 => raw::<Float32Type>(array, f64::from),
        DataType::Float64 => raw::<Float64Type>(array, |value| value),
        DataType::Decimal32(..) => decimals::<Decimal32Type>(array),
        DataType::Decimal64(..) => decimals::<Decimal64Type>(array),
        DataType::Decimal128(..) => decimals::<Decimal128Type>(array),
        DataType::Dictionary(..) => {
            let values = raw_numbers(array.as_any_dictionary().values());
            keys(array, |key| values.get(key).copied().unwrap_or(f64::NAN))
        }
        _ => Vec::new(),
    }
}

fn raw<P: ArrowPrimitiveType>(array: &dyn Array, number: impl Fn(P::Native) -> f64) -> Vec<f64> {
    let values = array.as_primitive::<P>().values();
    values.iter().map(|&value| number(value)).collect()
}

/// By their text, which rounds once.
fn decimals<P: DecimalType>(array: &dyn Array) -> Vec<f64> {
    let array: &PrimitiveArray<P> = array.as_primitive();
    (0..array.len())
        .map(|row| array.value_as_string(row).parse().unwrap_or(f64::NAN))
        .collect()
}

/// Something of the value that each row has in a dictionary.
fn keys<V>(array: &dyn Array, value: impl Fn(usize) -> V) -> Vec<V> {
    let dictionary = array.as_any_dictionary();
    match dictionary.values().is_empty() {
        true => Vec::new(),
        false => dictionary
            .normalized_keys()
            .into_iter()
            .map(value)
            .collect(),
    }
}

/// Calls `label` with the text of each value, in order. A number has the text that a table
/// would have.
pub(super) fn texts(
    array: &dyn Array,
    label: &mut dyn FnMut(usize, &str) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    refuse_nulls(array)?;
    plain_texts(array, label)
}

fn plain_texts(
    array: &dyn Array,
    label: &mut dyn FnMut(usize, &str) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    match array.data_type() {
        DataType::Utf8 => each(array.as_string::<i32>().iter(), label),
        DataType::LargeUtf8 => each(array.as_string::<i64>().iter(), label),
        DataType::Utf8View => each(array.as_string_view().iter(), label),
        DataType::Boolean => {
            let word = |value| if value { "true" } else { "false" };
            each(
                array.as_boolean().iter().map(|value| value.map(word)),
                label,
            )
        }
        DataType::Int8 => written::<Int8Type>(array, label, |value| value.to_string()),
        DataType::Int16 => written::<Int16Type>(array, label, |value| value.to_string()),
        DataType::Int32 => written::<Int32Type>(array, label, |value| value.to_string()),
        DataType::Int64 => written::<Int64Type>(array, label, |value| value.to_string()),
        DataType::UInt8 => written::<UInt8Type>(array, label, |value| value.to_string()),
        DataType::UInt16 => written::<UInt16Type>(array, label, |value| value.to_string()),
        DataType::UInt32 => written::<UInt32Type>(array, label, |value| value.to_string()),
        DataType::UInt64 => written::<UInt64Type>(array, label, |value| value.to_string()),
        // -0 and 0 are the same class.
        DataType::Float16 => {
            written::<Float16Type>(array, label, |value| (value.to_f32() + 0.0).to_string())
        }
        DataType::Float32 => {
            written::<Float32Type>(array, label, |value| (value + 0.0).to_string())
        }
        DataType::Float64 => {
            written::<Float64Type>(array, label, |value| (value + 0.0).to_string())
        }
        DataType::Decimal32(..) => decimal_texts::<Decimal32Type>(array, label),
        DataType::Decimal64(..) => decimal_texts::<Decimal64Type>(array, label),
        DataType::Decimal128(..) => decimal_texts::<Decimal128Type>(array, label),
        DataType::Dictionary(..) => {
            let mut names = Vec::new();
            plain_texts(array.as_any_dictionary().values(), &mut |_, text| {
                names.push(text.to_string());
                Ok(())
            })?;
            let rows = keys(array, |key| key);
            each(rows.iter().map(|&key| names.get(key)), label)
        }
        other => Err(Trouble::new(0, format!("{other} is no type of labels"))),
    }
}

/// Where there is no value the text is empty; nobody sees it but in a dictionary.
fn each<S: AsRef<str>>(
    texts: impl Iterator<Item = Option<S>>,
    label: &mut dyn FnMut(usize, &str) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    for (row, text) in texts.enumerate() {
        label(row, text.as_ref().map_or("", |text| text.as_ref()))?;
    }
    Ok(())
}

fn written<P: ArrowPrimitiveType>(
    array: &dyn Array,
    label: &mut dyn FnMut(usize, &str) -> Result<(), Trouble>,
    text: impl Fn(P::Native) -> String,
) -> Result<(), Trouble> {
    let values = array.as_primitive::<P>().values();
    each(values.iter().map(|&value| Some(text(value))), label)
}

fn decimal_texts<P: DecimalType>(
    array: &dyn Array,
    label: &mut dyn FnMut(usize, &str) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let array: &PrimitiveArray<P> = array.as_primitive();
    each(
        (0..array.len()).map(|row| Some(array.value_as_string(row))),
        label,
    )
}
