use std::fs;

use serde_json::Value;

use super::files::same;
use super::*;

/// A folder with room for a model file, and the bytes of a good one.
struct Bench {
    folder: tempfile::TempDir,
    model: Model<f32>,
    good: Vec<u8>,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("good");
        let model = model::<f32>([3, 2, 2], RBF, "standardize");
        model.save(&path).unwrap();
        let good = fs::read(path).unwrap();
        Bench {
            folder,
            model,
            good,
        }
    }

    fn load(&self, bytes: &[u8]) -> Result<AnyModel> {
        let path = self.folder.path().join("bad");
        fs::write(&path, bytes).unwrap();
        AnyModel::load(&path)
    }

    fn refuses(&self, bytes: &[u8], expected: &str) {
        let error = self.load(bytes).unwrap_err();
        assert!(matches!(error, Error::File { .. }), "{error:?}");
        let message = error.to_string();
        assert!(message.contains(expected), "{message} lacks {expected}");
        assert!(message.contains("bad: "), "{message}");
    }

    /// The good file with other tensors or metadata, as another program may
    /// write it, and without a checksum that fits.
    fn changed(&self, change: impl FnOnce(&mut Value)) -> Vec<u8> {
        let length = u64::from_le_bytes(*self.good.first_chunk().unwrap()) as usize;
        let mut header = serde_json::from_slice(&self.good[8..8 + length]).unwrap();
        change(&mut header);
        let header = header.to_string();
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(&self.good[8 + length..]);
        bytes
    }

    /// As [`Bench::changed`], for the description.
    fn described(&self, change: impl FnOnce(&mut Value)) -> Vec<u8> {
        self.changed(|header| {
            let text = &mut header["__metadata__"]["lssvm"];
            let mut description = serde_json::from_str(text.as_str().unwrap()).unwrap();
            change(&mut description);
            *text = description.to_string().into();
        })
    }
}

#[test]
fn each_bad_file_has_its_own_message() {
    let bench = Bench::new();
    assert!(bench.load(&bench.good).is_ok());
    let remedy = "copy it again";
    let foreign = "is not a model of lssvm, nor any safetensors file";
    bench.refuses(b"", "is empty, so no model: copy it again");
    bench.refuses(b"label,x,y\n1,2,3\n", foreign);
    bench.refuses(&[0; 100], foreign);
    bench.refuses(&[0xff; 100], foreign);
    bench.refuses(&bench.good[..8], foreign);
    bench.refuses(&bench.good[..20], "was cut short");
    bench.refuses(&bench.good[..20], remedy);
    let end = bench.good.len() - 1;
    bench.refuses(&bench.good[..end], "shorter or longer than its header says");
    let longer = [&bench.good[..], &[0]].concat();
    bench.refuses(&longer, "shorter or longer than its header says");

    let mut header = bench.good.clone();
    header[20] = b'}';
    bench.refuses(&header, "has a damaged header");
    let mut number = bench.good.clone();
    number[end] ^= 1;
    bench.refuses(&number, "does not match its checksum");

    bench.refuses(
        &bench.changed(|header| drop(header.as_object_mut().unwrap().remove("__metadata__"))),
        "is a safetensors file, but not a model of lssvm",
    );
    bench.refuses(
        &bench.changed(|header| header["__metadata__"]["checksum"] = "".into()),
        "does not match its checksum",
    );
    bench.refuses(
        &bench.changed(|header| header["__metadata__"]["lssvm"] = "{".into()),
        "has a description that cannot be read",
    );
    bench.refuses(
        &bench.changed(|header| {
            header["x"] = header["bias"].take();
            header.as_object_mut().unwrap().remove("bias");
        }),
        "lacks the tensor 'bias'",
    );
    bench.refuses(
        &bench.changed(|header| header["weights"]["shape"] = json!([6])),
        "has a tensor 'weights' of F32 [6]",
    );
    bench.refuses(
        &bench.changed(|header| header["weights"]["dtype"] = "I32".into()),
        "has a tensor 'weights' of I32 [3, 2]",
    );
    bench.refuses(
        &bench.changed(|header| header["weights"]["shape"] = json!([1u64 << 40, 1u64 << 40])),
        "has a damaged header",
    );
    bench.refuses(
        &bench.described(|description| {
            description["format_version"] = 3.into();
            description["lssvm_version"] = "9.9.9".into();
        }),
        "was written by a newer version of lssvm (9.9.9, file format 3; this is ",
    );
    bench.refuses(
        &bench.described(|description| description["format_version"] = u64::MAX.into()),
        "upgrade lssvm",
    );
}

#[test]
fn files_made_by_others_are_checked_beyond_the_checksum() {
    type Change = fn(&mut Value);
    let bench = Bench::new();
    // The checksum that such a file ought to have, as if its maker knew how.
    let refuses = |model: &Model<f32>, change: &dyn Fn(&mut Value), expected: &str| {
        let tensors = format::tensors(
            &model.bias,
            model.classes.as_ref().map(Matrix::values),
            model.support.points().into(),
            &model.weights,
        );
        let mut description = serde_json::to_value(format::Stored {
            format_version: 1,
            lssvm_version: "0".into(),
            precision: Precision::F32,
            description: &model.description,
        })
        .unwrap();
        change(&mut description);
        let description = description.to_string();
        let (checksum, _) = format::digest(&description, &tensors);
        let mut bytes = format::header(&description, &checksum, &tensors).unwrap();
        for tensor in &tensors {
            bytes.extend(tensor.numbers.bytes());
        }
        match expected {
            "" => assert!(bench.load(&bytes).is_ok()),
            _ => bench.refuses(&bytes, expected),
        }
    };
    let unfit = "has parts that do not fit together (";
    refuses(&bench.model, &|_| {}, "");
    let mut of_classes = bench.model.clone();
    of_classes.classes = Some(Matrix::from_rows(&[[0.0, 1.0, 1.0]]));
    refuses(&of_classes, &|_| {}, "");
    of_classes.classes = Some(Matrix::from_rows(&[[0.0, 1.0, -1.0]]));
    refuses(&of_classes, &|_| {}, unfit);
    refuses(
        &bench.model,
        &|d| d["precision"] = "f64".into(),
        "another precision",
    );
    refuses(
        &bench.model,
        &|d| d["kernel"] = Value::Null,
        "is not understood",
    );
    refuses(
        &bench.model,
        &|d| d["pipeline"]["n_features_in"] = 3.into(),
        "is not understood",
    );
    refuses(
        &bench.model,
        &|d| d["outputs"]["names"] = json!(["one"]),
        unfit,
    );
    refuses(
        &bench.model,
        &|d| d["input"]["n_features"] = 3.into(),
        unfit,
    );
    let mut model = bench.model.clone();
    let p = Matrix::from_rows(&[[0.75, 0.25], [0.5, 0.5]]);
    model.description.conformal =
        Some(Conformal::of_classes(HeldOut::LeaveOneOut, &p, &[0, 1]).unwrap());
    refuses(&model, &|_| {}, "");
    let changes: [(Change, &str); 9] = [
        (|c| c["rows"] = 3.into(), unfit),
        (|c| c["rows"] = json!(u64::MAX), unfit),
        (|c| c["ranks"] = json!([2, 1]), unfit),
        (|c| c["ranks"] = json!([]), unfit),
        (|c| c["misfits"] = json!([]), unfit),
        (|c| c["misfits"] = json!([[0.5, 0.25]]), unfit),
        (|c| c["misfits"] = json!([[-0.5, 0.25]]), unfit),
        (|c| c["misfits"] = json!([[0.5, null]]), "is not understood"),
        (|c| c["from"] = "hearsay".into(), "is not understood"),
    ];
    for (change, expected) in changes {
        refuses(&model, &|d| change(&mut d["conformal"]), expected);
    }
    let mut model = bench.model.clone();
    model.weights = wave(2, 2, 0).cast();
    refuses(&model, &|_| {}, unfit);
    let mut model = bench.model.clone();
    model.bias.push(0.0);
    refuses(&model, &|_| {}, unfit);
    let mut model = bench.model.clone();
    model.support = Samples::new(wave(3, 5, 0).cast(), &RBF);
    refuses(&model, &|_| {}, unfit);
    let mut model = bench.model.clone();
    (model.support, model.weights) = (model.support.select(&[]), Matrix::zeros(0, 2));
    refuses(&model, &|_| {}, "has a tensor 'support' of F32 [0, 2]");
    // As many rows of nothing as a header can say; their norms would take all memory.
    let mut model = bench.model.clone();
    model.support = Samples::new(Matrix::zeros(1 << 60, 0), &Kernel::Linear);
    refuses(
        &model,
        &|_| {},
        "has a tensor 'support' of F32 [1152921504606846976, 0]",
    );
    let mut model = bench.model.clone();
    model.bias[1] = f32::NAN;
    refuses(&model, &|_| {}, "holds numbers that are not finite");
}

#[test]
fn every_flipped_bit_is_found() {
    let bench = Bench::new();
    for bit in 0..bench.good.len() * 8 {
        let mut bytes = bench.good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        match bench.load(&bytes) {
            Err(error) => assert!(matches!(error, Error::File { .. }), "{error:?}"),
            Ok(AnyModel::F32(model)) => assert!(same(&model, &bench.model), "bit {bit}"),
            Ok(AnyModel::F64(_)) => panic!("bit {bit} changed the precision"),
        }
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let bench = Bench::new();
    for length in 0..bench.good.len() {
        bench.refuses(&bench.good[..length], "");
    }
}

#[test]
fn what_is_no_file_is_refused() {
    let bench = Bench::new();
    let message = message(AnyModel::load(bench.folder.path()));
    assert!(message.contains("is a folder, not a model"), "{message}");
    let error = AnyModel::load(&bench.folder.path().join("none")).unwrap_err();
    assert!(
        error.to_string().contains("cannot open the model"),
        "{error}"
    );
}
