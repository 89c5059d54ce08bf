//! What is answered: metadata, and tensors as text.

use std::io::Write;

use lssvm::linalg::{Matrix, Precision, Scalar};
use lssvm::model::{Description, Outputs};
use serde::Serialize;
use serde_json::{Value, json};

use super::{INPUT, Output, Spec, VERSION};

/// What the server says of itself.
pub fn server_metadata(extensions: &[&str]) -> Value {
    json!({
        "name": "lssvm",
        "version": env!("CARGO_PKG_VERSION"),
        "extensions": extensions,
    })
}

/// What the server says of a model: its tensors, and the names of features and outputs.
pub fn metadata(name: &str, spec: &Spec, description: &Description) -> Value {
    let number = number_type(spec.precision);
    let mut input = json!({
        "name": INPUT,
        "datatype": number,
        "shape": [-1, spec.n_features],
    });
    let mut parameters = serde_json::Map::new();
    if let Some(names) = &description.input.feature_names {
        parameters.insert("names".into(), json!(names));
    }
    if let Some(image) = spec.image {
        parameters.insert("image_shape".into(), json!(image));
    }
    if !parameters.is_empty() {
        input["parameters"] = parameters.into();
    }
    let tensor = |output: &Output| {
        let (datatype, shape) = match output {
            Output::Class => ("BYTES", json!([-1])),
            _ => (datatype(*output, spec), json!([-1, spec.n_outputs])),
        };
        let mut tensor = json!({"name": output.name(), "datatype": datatype, "shape": shape});
        let named = match &description.outputs {
            Outputs::Classes { .. } => true,
            Outputs::Values { names } => names.iter().any(|name| !name.is_empty()),
        };
        if named {
            tensor["parameters"] = json!({"names": description.outputs.names()});
        }
        tensor
    };
    json!({
        "name": name,
        "versions": [VERSION],
        "platform": "lssvm",
        "inputs": [input],
        "outputs": spec.outputs.iter().map(tensor).collect::<Vec<_>>(),
    })
}

fn number_type(precision: Precision) -> &'static str {
    match precision {
        Precision::F32 => "FP32",
        Precision::F64 => "FP64",
    }
}

fn datatype(output: Output, spec: &Spec) -> &'static str {
    match output {
        Output::Class => "BYTES",
        Output::Probabilities => "FP64",
        Output::Scores | Output::Values => number_type(spec.precision),
    }
}

/// The answer to a request, tensor by tensor.
#[derive(Debug)]
pub struct Answer<'a> {
    spec: &'a Spec,
    text: Vec<u8>,
    tensors: usize,
}

impl<'a> Answer<'a> {
    /// An answer of this model to the request with this `id`.
    pub fn new(model: &str, spec: &'a Spec, id: Option<&str>) -> Self {
        let mut answer = Self {
            spec,
            text: Vec::new(),
            tensors: 0,
        };
        answer.add("{\"model_name\":");
        answer.value(model);
        answer.add(",\"model_version\":");
        answer.value(VERSION);
        if let Some(id) = id {
            answer.add(",\"id\":");
            answer.value(id);
        }
        answer.add(",\"outputs\":[");
        answer
    }

    /// Adds the names of classes.
    pub fn classes(&mut self, names: &[&str]) {
        self.tensor(Output::Class, &[names.len()], names);
    }

    /// Adds a tensor of numbers.
    pub fn numbers<T: Scalar + Serialize>(&mut self, output: Output, numbers: &Matrix<T>) {
        self.tensor(output, &[numbers.rows(), numbers.cols()], numbers.values());
    }

    /// The text.
    pub fn finish(mut self) -> Vec<u8> {
        self.add("]}");
        self.text
    }

    fn tensor<V: Serialize + ?Sized>(&mut self, output: Output, shape: &[usize], data: &V) {
        if self.tensors > 0 {
            self.add(",");
        }
        self.tensors += 1;
        self.add("{\"name\":");
        self.value(output.name());
        self.add(",\"datatype\":");
        self.value(datatype(output, self.spec));
        self.add(",\"shape\":");
        self.value(shape);
        self.add(",\"data\":");
        self.value(data);
        self.add("}");
    }

    fn add(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    fn value<V: Serialize + ?Sized>(&mut self, value: &V) {
        // Text, numbers and lists of them always are JSON, and memory always takes it.
        let _ = serde_json::to_writer(&mut self.text as &mut dyn Write, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_json_with_the_same_numbers() {
        let spec = Spec {
            n_features: 1,
            image: None,
            n_outputs: 2,
            outputs: &[Output::Class, Output::Scores, Output::Probabilities],
            precision: Precision::F32,
        };
        let scores = Matrix::from_rows(&[[0.1f32, -3.4e-38], [1.0 / 3.0, 2e20]]);
        let mut answer = Answer::new("m\"", &spec, Some("\u{1}"));
        answer.classes(&["a\\", "ä"]);
        answer.numbers(Output::Scores, &scores);
        let text = answer.finish();
        let json: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(json["model_name"], "m\"");
        assert_eq!(json["id"], "\u{1}");
        assert_eq!(json["outputs"][0]["data"], json!(["a\\", "ä"]));
        assert_eq!(json["outputs"][1]["shape"], json!([2, 2]));
        let data: Vec<f32> = serde_json::from_value(json["outputs"][1]["data"].clone()).unwrap();
        assert_eq!(data, scores.values());
    }
}
