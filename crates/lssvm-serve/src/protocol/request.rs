//! What is asked: the rows, and which outputs.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use lssvm::linalg::{Matrix, Scalar};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::numbers::{Datatype, MAX_DIMENSIONS, parse_numbers};
use super::{Output, Spec};
use crate::http::Refusal;

/// Numbers and names in one answer at most: about 100 MB of text. A small request could
/// otherwise ask for a very large answer.
const MAX_ANSWER: usize = 4 << 20;

/// A request that can be answered.
#[derive(Debug)]
pub struct Asked<T: Scalar> {
    /// What the client calls it.
    pub id: Option<String>,
    /// Raw features.
    pub rows: Matrix<T>,
    /// What is wanted of each row, in this order.
    pub outputs: Vec<Output>,
    /// For an explanation: the class to explain.
    pub class: Option<String>,
    /// For an explanation: how many training rows.
    pub count: Option<usize>,
}

/// A request as it is written. Fields of other servers are ignored, as the protocol wants it.
#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    inputs: Few<WrittenInput<'a>>,
    #[serde(borrow)]
    outputs: Option<Few<WrittenOutput<'a>>>,
    #[serde(borrow)]
    parameters: Option<Parameters<'a>>,
}

#[derive(Deserialize)]
struct WrittenInput<'a> {
    #[serde(borrow, rename = "name")]
    _name: Cow<'a, str>,
    shape: Few<u64>,
    #[serde(borrow)]
    datatype: Cow<'a, str>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WrittenOutput<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

/// Of an explanation.
#[derive(Deserialize, Default)]
struct Parameters<'a> {
    #[serde(borrow)]
    class: Option<Cow<'a, str>>,
    count: Option<usize>,
}

/// A short list: memory is not taken for a long one.
struct Few<E>(Vec<E>);

const FEW: usize = 16;

impl<'de, E: Deserialize<'de>> Deserialize<'de> for Few<E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit<E>(PhantomData<E>);
        impl<'de, E: Deserialize<'de>> Visitor<'de> for Visit<E> {
            type Value = Few<E>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an array of at most {FEW} elements")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Few<E>, A::Error> {
                let mut few = Vec::new();
                while let Some(element) = list.next_element()? {
                    if few.len() == FEW {
                        return Err(A::Error::invalid_length(FEW + 1, &self));
                    }
                    few.push(element);
                }
                Ok(Few(few))
            }
        }
        deserializer.deserialize_seq(Visit(PhantomData))
    }
}

/// Reads the body of a request for inference.
///
/// # Errors
/// A [`Refusal`] that says what is wrong and what the model wants.
pub fn parse_request<T: Scalar>(body: &[u8], spec: &Spec) -> Result<Asked<T>, Refusal> {
    let written: Written<'_> = serde_json::from_slice(body)
        .map_err(|error| wrong(format!("the body is no inference request: {error}")))?;
    let [input] = written.inputs.0.as_slice() else {
        let count = written.inputs.0.len();
        return Err(wrong(format!(
            "{count} inputs; the model wants one tensor with all features"
        )));
    };
    let outputs = outputs(written.outputs.as_ref(), spec)?;
    let (shape, rows) = shape(&input.shape.0, spec)?;
    let width: usize = outputs.iter().map(|output| output.width(spec)).sum();
    if rows.saturating_mul(width) > MAX_ANSWER {
        let most = MAX_ANSWER / width.max(1);
        let message = format!("{rows} rows are too many for one answer: send {most} at most");
        return Err(Refusal::new(413, message));
    }
    let Some(datatype) = Datatype::named(&input.datatype) else {
        return Err(wrong(format!(
            "datatype {:?} has no numbers that a model can use; send FP32, FP64, or INT or UINT \
             with 8 to 64 bits",
            shorten(&input.datatype)
        )));
    };
    let Some(data) = input.data else {
        return Err(wrong(
            "the input has no data; send them in the JSON text".into(),
        ));
    };
    let values = parse_numbers(data.get(), &shape, datatype)?;
    let parameters = written.parameters.unwrap_or_default();
    Ok(Asked {
        id: written.id.map(Cow::into_owned),
        rows: Matrix::from_vec(rows, spec.n_features, values),
        outputs,
        class: parameters.class.map(Cow::into_owned),
        count: parameters.count,
    })
}

/// The shape of a tensor, and its number of rows.
fn shape(written: &[u64], spec: &Spec) -> Result<(Vec<usize>, usize), Refusal> {
    let sizes: Option<Vec<usize>> = written.iter().map(|&s| s.try_into().ok()).collect();
    let fits = |sizes: &[usize]| match (sizes, spec.image) {
        ([_, features], _) => *features == spec.n_features,
        ([_, h, w], Some([1, height, width])) => (*h, *w) == (height, width),
        ([_, c, h, w], Some(image)) => [*c, *h, *w] == image,
        _ => false,
    };
    match sizes {
        Some(sizes) if sizes.len() <= MAX_DIMENSIONS && fits(&sizes) => {
            let rows = sizes[0];
            Ok((sizes, rows))
        }
        _ => Err(wrong(format!(
            "an input of shape {written:?} does not fit the model, which wants {}",
            wanted(spec)
        ))),
    }
}

/// The shapes that a model takes, in words.
fn wanted(spec: &Spec) -> String {
    let rows = format!("[n, {}] for n rows", spec.n_features);
    match spec.image {
        None => rows,
        Some([1, h, w]) => format!("{rows}, [n, {h}, {w}] or [n, 1, {h}, {w}]"),
        Some([c, h, w]) => format!("{rows} or [n, {c}, {h}, {w}]"),
    }
}

/// What is wanted; all if nothing is said.
fn outputs(written: Option<&Few<WrittenOutput<'_>>>, spec: &Spec) -> Result<Vec<Output>, Refusal> {
    let Some(Few(written)) = written.filter(|few| !few.0.is_empty()) else {
        return Ok(spec.outputs.to_vec());
    };
    let mut outputs: Vec<Output> = Vec::new();
    for WrittenOutput { name } in written {
        let found = spec.outputs.iter().find(|output| output.name() == name);
        let Some(&output) = found else {
            let names: Vec<&str> = spec.outputs.iter().map(|output| output.name()).collect();
            return Err(wrong(format!(
                "there is no output {:?}; the model has {}",
                shorten(name),
                names.join(", ")
            )));
        };
        if outputs.contains(&output) {
            return Err(wrong(format!("output {name} is asked for twice")));
        }
        outputs.push(output);
    }
    Ok(outputs)
}

/// Enough of a foreign text to recognise it.
fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

fn wrong(message: String) -> Refusal {
    Refusal::new(400, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lssvm::linalg::Precision;
    use proptest::prelude::*;

    fn spec(image: Option<[usize; 3]>) -> Spec {
        Spec {
            n_features: 6,
            image,
            n_outputs: 3,
            outputs: &[Output::Class, Output::Scores, Output::Probabilities],
            precision: Precision::F32,
        }
    }

    fn ask(body: &str, image: Option<[usize; 3]>) -> Result<Asked<f32>, Refusal> {
        parse_request(body.as_bytes(), &spec(image))
    }

    fn with_shape(shape: &str, image: Option<[usize; 3]>) -> Result<usize, u16> {
        let body = format!(
            r#"{{"inputs": [{{"name": "x", "shape": {shape}, "datatype": "FP32", "data": [1,2,3,4,5,6]}}]}}"#
        );
        ask(&body, image)
            .map(|asked| asked.rows.rows())
            .map_err(|refusal| refusal.status)
    }

    #[test]
    fn a_request_is_understood() {
        let body = r#"{"id": "a\"b", "parameters": {"x": {"y": [1]}}, "outputs": [{"name": "scores",
            "parameters": {"binary_data": false}}], "inputs": [{"data": [[1,2,3,4,5,6],[7,8,9,10,11,12]],
            "datatype": "INT32", "shape": [2, 6], "name": "x", "more": null}]}"#;
        let asked = ask(body, None).unwrap();
        assert_eq!(asked.id.as_deref(), Some("a\"b"));
        assert_eq!(asked.outputs, [Output::Scores]);
        assert_eq!(asked.rows.row(1), [7.0, 8.0, 9.0, 10.0, 11.0, 12.0]);
        let all = r#"{"inputs": [{"name": "x", "shape": [0, 6], "datatype": "FP32", "data": []}]}"#;
        assert_eq!(ask(all, None).unwrap().outputs.len(), 3);
    }

    #[test]
    fn shapes_are_rows_or_images() {
        assert_eq!(with_shape("[1, 6]", None), Ok(1));
        assert_eq!(with_shape("[1, 2, 3]", Some([1, 2, 3])), Ok(1));
        assert_eq!(with_shape("[1, 1, 2, 3]", Some([1, 2, 3])), Ok(1));
        assert_eq!(with_shape("[1, 3, 2, 1]", Some([3, 2, 1])), Ok(1));
        for (shape, image) in [
            ("[6]", None),
            ("[]", None),
            ("[1, 2, 3]", None),
            ("[1, 3, 2]", Some([1, 2, 3])),
            ("[1, 2, 1, 3]", Some([3, 2, 1])),
            ("[1, 6, 1]", Some([3, 2, 1])),
            ("[-1, 6]", None),
            ("[1.0, 6]", None),
            ("[2, 6]", None),
            ("[\"1\", 6]", None),
            ("6", None),
        ] {
            assert_eq!(with_shape(shape, image), Err(400), "{shape} {image:?}");
        }
        assert_eq!(with_shape("[18446744073709551615, 6]", None), Err(413));
        assert_eq!(with_shape("[600000, 6]", None), Err(413));
    }

    #[test]
    fn wrong_requests_are_refused() {
        let input = r#"{"name": "x", "shape": [1, 6], "datatype": "FP32", "data": [1,2,3,4,5,6]}"#;
        for body in [
            "".to_string(),
            "[]".into(),
            "{}".into(),
            r#"{"inputs": []}"#.into(),
            format!(r#"{{"inputs": [{input}, {input}]}}"#),
            format!(r#"{{"inputs": [{input}], "outputs": [{{"name": "values"}}]}}"#),
            format!(
                r#"{{"inputs": [{input}], "outputs": [{{"name": "class"}}, {{"name": "class"}}]}}"#
            ),
            format!(
                r#"{{"inputs": [{input}], "outputs": [{}{{}}]}}"#,
                "{\"name\": \"class\"},".repeat(20)
            ),
            format!(r#"{{"inputs": [{input}], "id": 7}}"#),
            format!(r#"{{"inputs": [{input}]}} more"#),
            format!(r#"{{"inputs": [{input}]"#),
            format!(r#"{{"inputs": [{}]}}"#, input.replace("FP32", "BYTES")),
            format!(r#"{{"inputs": [{}]}}"#, input.replace("data\"", "datum\"")),
            format!(r#"{{"inputs": [{}]}}"#, input.replace("6]}", "NaN]}")),
        ] {
            assert_eq!(ask(&body, None).unwrap_err().status, 400, "{body}");
        }
        for deep in [
            "[".repeat(1_000_000),
            "{\"inputs\":".repeat(100_000),
            format!(
                r#"{{"inputs": [{}]}}"#,
                input.replace("1,2,3,4,5,6", &"[".repeat(100_000))
            ),
            format!(
                r#"{{"parameters": {}{}}}"#,
                "[".repeat(100_000),
                "]".repeat(100_000)
            ),
        ] {
            assert_eq!(ask(&deep, None).unwrap_err().status, 400);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_request::<f64>(&bytes, &spec(None));
        }

        #[test]
        fn a_damaged_request_is_read_or_refused(at in 0usize..200, byte in any::<u8>()) {
            let mut bytes = br#"{"id":"1","inputs":[{"name":"x","shape":[1,6],"datatype":"FP32",
                "data":[1,2,3,4.5,5e1,-6]}],"outputs":[{"name":"class"}]}"#.to_vec();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = parse_request::<f32>(&bytes, &spec(Some([1, 2, 3])));
        }
    }
}
