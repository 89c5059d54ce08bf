use std::fs;

use proptest::prelude::*;

use super::*;

/// Whether all of two models is the same to the last bit.
pub(super) fn same<T: Scalar>(a: &Model<T>, b: &Model<T>) -> bool {
    let bytes = |values: &[T]| bytemuck::cast_slice::<T, u8>(values).to_vec();
    let shape = |m: &Model<T>| (m.n_support(), m.n_outputs(), m.support().points().cols());
    shape(a) == shape(b)
        && bytes(a.support().points().values()) == bytes(b.support().points().values())
        && bytes(a.weights().values()) == bytes(b.weights().values())
        && bytes(a.bias()) == bytes(b.bias())
        && a.classes.as_ref().map(Matrix::values) == b.classes.as_ref().map(Matrix::values)
        && a.description() == b.description()
}

/// A model read back in the precision that is expected.
trait Typed: Scalar {
    fn of(model: AnyModel) -> Option<Model<Self>>;
}

impl Typed for f32 {
    fn of(model: AnyModel) -> Option<Model<f32>> {
        match model {
            AnyModel::F32(model) => Some(model),
            AnyModel::F64(_) => None,
        }
    }
}

impl Typed for f64 {
    fn of(model: AnyModel) -> Option<Model<f64>> {
        match model {
            AnyModel::F64(model) => Some(model),
            AnyModel::F32(_) => None,
        }
    }
}

fn saved_and_loaded<T: Typed>(model: &Model<T>) -> Model<T> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.lssvm");
    model.save(&path).unwrap();
    let loaded = AnyModel::load(&path).unwrap();
    assert_eq!(loaded.precision(), T::PRECISION);
    assert_eq!(loaded.n_support(), model.n_support());
    assert_eq!(loaded.size_bytes(), model.size_bytes());
    assert_eq!(loaded.description(), model.description());
    assert!(fs::metadata(&path).unwrap().len() > loaded.size_bytes());
    T::of(loaded).unwrap()
}

fn comes_back<T: Typed>(parts: ModelParts<f64>) {
    let kernel = parts.description.kernel;
    let model = Model::new(ModelParts::<T> {
        support: Samples::new(parts.support.into_points().cast::<T>(), &kernel),
        weights: parts.weights.cast(),
        bias: parts.bias.iter().map(|&b| T::from_f64(b)).collect(),
        classes: parts.classes.map(|classes| classes.cast()),
        description: parts.description,
    })
    .unwrap();
    let loaded = saved_and_loaded(&model);
    assert!(same(&model, &loaded));
    let x = wave(5, model.n_features(), 6).cast::<T>();
    let bits = |model: &Model<T>| {
        let scores = model.decision_function(x.clone()).unwrap();
        bytemuck::cast_slice::<T, u8>(scores.values()).to_vec()
    };
    assert_eq!(bits(&model), bits(&loaded));
}

fn kernels() -> impl Strategy<Value = Kernel> {
    let (gamma, coef0) = (1e-3f64..2.0, -1.0f64..1.0);
    prop_oneof![
        Just(Kernel::Linear),
        gamma.clone().prop_map(|gamma| Kernel::Rbf { gamma }),
        gamma.clone().prop_map(|gamma| Kernel::Laplacian { gamma }),
        (gamma.clone(), coef0.clone(), 1u32..5).prop_map(|(gamma, coef0, degree)| Kernel::Poly {
            gamma,
            coef0,
            degree
        }),
        (gamma, coef0).prop_map(|(gamma, coef0)| Kernel::Sigmoid { gamma, coef0 }),
    ]
}

fn texts(n: usize) -> impl Strategy<Value = Vec<String>> {
    let text = prop_oneof![
        any::<String>(),
        Just(String::new()),
        Just("\"quoted\" \\ \n\0 {}".to_string()),
        Just("été 数字 🦀".to_string()),
    ];
    prop::collection::vec(text, n)
}

fn matrix(rows: usize, cols: usize) -> impl Strategy<Value = Matrix<f64>> {
    prop::collection::vec(-3.0f64..3.0, rows * cols)
        .prop_map(move |values| Matrix::from_vec(rows, cols, values))
}

fn any_parts() -> impl Strategy<Value = ModelParts<f64>> {
    let preprocess =
        prop::sample::select(vec!["none", "standardize,unit-norm", "min-max", "fourier"]);
    (
        1usize..7,
        1usize..7,
        1usize..4,
        kernels(),
        preprocess,
        any::<bool>(),
    )
        .prop_flat_map(|(p, m, k, kernel, preprocess, classes)| {
            let tensors = (matrix(p, m), matrix(p, k), matrix(1, k));
            let words = (texts(k), prop::option::of(texts(m)), texts(2));
            (tensors, words, any::<f64>(), any::<Option<u32>>()).prop_map(
                move |((x, weights, bias), (names, feature_names, label_names), c, index_base)| {
                    let spec: PipelineSpec = preprocess.parse().unwrap();
                    let (pipeline, x) = spec.fit(x, None).unwrap();
                    let misfits = wave(1 + p * 400, if classes { 1 } else { k }, 9);
                    let zeros = Matrix::zeros(misfits.rows(), misfits.cols());
                    let conformal =
                        Conformal::of_values(HeldOut::LeaveOneOut, &zeros, &misfits).ok();
                    let outputs = match classes {
                        true => Outputs::Classes { names },
                        false => Outputs::Values { names },
                    };
                    ModelParts {
                        support: Samples::new(x, &kernel),
                        weights,
                        bias: bias.into_values(),
                        classes: classes
                            .then(|| Matrix::from_fn(1, p, |_, i| ((i * 7) % k) as f64)),
                        description: Description {
                            kernel,
                            pipeline,
                            outputs,
                            summary: json!([label_names, null, u64::MAX]),
                            scaling: None,
                            conformal,
                            notes: [("from".to_string(), "a test".to_string())].into(),
                            input: Input {
                                n_features: m,
                                feature_names,
                                label_names,
                                label_places: vec![1, m + 2],
                                weight_name: None,
                                weight_place: Some(2),
                                index_base,
                                image: Some([1, m, 1]),
                            },
                            config: json!({ "c": c, "nested": { "": [true] } }),
                        },
                    }
                },
            )
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_saved_model_comes_back_to_the_last_bit(parts in any_parts()) {
        comes_back::<f32>(parts.clone());
        comes_back::<f64>(parts);
    }
}

#[test]
fn the_same_model_gives_the_same_file_which_safetensors_reads() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    let model = model::<f32>([5, 3, 2], RBF, "standardize");
    model.save(&a).unwrap();
    model.clone().save(&b).unwrap();
    let bytes = fs::read(a).unwrap();
    assert_eq!(bytes, fs::read(b).unwrap());
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.tensor("support").unwrap().shape(), &[5, 3]);
    assert_eq!(file.tensor("weights").unwrap().shape(), &[5, 2]);
    let bias = file.tensor("bias").unwrap();
    assert_eq!(bias.data(), bytemuck::cast_slice::<f32, u8>(model.bias()));
}

#[test]
fn a_mapped_model_outlives_its_replacement() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m");
    let (old, new) = (
        model::<f64>([5, 3, 2], RBF, "none"),
        model::<f64>([50, 4, 3], Kernel::Linear, "none"),
    );
    old.save(&path).unwrap();
    let loaded = f64::of(AnyModel::load(&path).unwrap()).unwrap();
    new.save(&path).unwrap();
    assert!(same(&old, &loaded));
    // A loaded model can be saved over the file that it is mapped from.
    let loaded = f64::of(AnyModel::load(&path).unwrap()).unwrap();
    loaded.save(&path).unwrap();
    assert!(same(&new, &loaded));
    assert!(same(
        &new,
        &f64::of(AnyModel::load(&path).unwrap()).unwrap()
    ));
    assert_eq!(entries(folder.path()), ["m"]);
}

#[test]
fn a_header_of_odd_length_is_read_by_copying() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m");
    let model = model::<f64>([5, 3, 2], RBF, "none");
    model.save(&path).unwrap();
    let bytes = fs::read(&path).unwrap();
    let length = u64::from_le_bytes(*bytes.first_chunk().unwrap());
    for more in 1..8 {
        let mut odd = (length + more).to_le_bytes().to_vec();
        odd.extend(&bytes[8..8 + length as usize]);
        odd.extend(vec![b' '; more as usize]);
        odd.extend(&bytes[8 + length as usize..]);
        fs::write(&path, odd).unwrap();
        assert!(same(
            &model,
            &f64::of(AnyModel::load(&path).unwrap()).unwrap()
        ));
    }
}

/// The names in a folder, in order.
fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_save_that_fails_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let inside = |name: &str| folder.path().join(name);
    fs::create_dir(inside("folder")).unwrap();
    fs::write(inside("file"), "").unwrap();
    let model = model::<f32>([5, 3, 2], RBF, "none");
    for (name, expected) in [
        (
            "missing/m",
            "missing does not exist: create it first (mkdir -p ",
        ),
        ("folder", "is a folder: give the name of a file in it"),
        ("file/m", "file is not a folder"),
    ] {
        for result in [model.save(&inside(name)), check_writable(&inside(name))] {
            let message = message(result);
            assert!(message.contains(expected), "{message}");
        }
        assert_eq!(entries(folder.path()), ["file", "folder"]);
        assert!(entries(&inside("folder")).is_empty());
    }
    assert!(message(check_writable(Path::new("/"))).contains("is a folder"));
    assert!(message(check_writable(Path::new(""))).contains("give the name of a file"));

    // A failure after the temporary file was made.
    let place = crate::files::Target::new(&inside("m")).unwrap();
    let mut temporary = crate::files::Temporary::beside(&place).unwrap();
    temporary.write(b"half").unwrap();
    assert_eq!(entries(folder.path()).len(), 3);
    fs::create_dir(inside("m")).unwrap();
    assert!(message(temporary.become_file(&place)).contains("put the file in its place"));
    assert_eq!(entries(folder.path()), ["file", "folder", "m"]);
}

#[test]
fn a_place_is_checked_without_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m");
    check_writable(&path).unwrap();
    assert!(entries(folder.path()).is_empty());
    fs::write(&path, "before").unwrap();
    check_writable(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"before");
    assert_eq!(entries(folder.path()), ["m"]);
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_devices_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    fs::write(&file, "before").unwrap();
    std::os::unix::fs::symlink("file", &link).unwrap();
    let model = model::<f64>([5, 3, 2], RBF, "none");
    model.save(&link).unwrap();
    assert!(link.is_symlink());
    assert!(same(
        &model,
        &f64::of(AnyModel::load(&file).unwrap()).unwrap()
    ));
    assert!(message(check_writable(Path::new("/dev/null"))).contains("is a device or a pipe"));
    assert!(message(AnyModel::load(Path::new("/dev/null"))).contains("is a device or a pipe"));
}

#[test]
fn inputs_of_earlier_versions_are_understood() {
    let old = json!({
        "n_features": 3, "feature_names": null, "label_names": [], "index_base": null, "image": null
    });
    let expected = Input {
        n_features: 3,
        ..Input::default()
    };
    assert_eq!(serde_json::from_value::<Input>(old).unwrap(), expected);
}

#[test]
fn models_of_earlier_versions_have_no_intervals_and_say_what_to_do() {
    let model = model::<f64>([5, 3, 2], RBF, "none");
    let mut old = serde_json::to_value(model.description()).unwrap();
    assert!(old.get("conformal").is_none() && old.get("scaling").is_none());
    let description: Description = serde_json::from_value(old.take()).unwrap();
    assert_eq!(description.conformal, None);
    let loaded = saved_and_loaded(&model);
    let x = wave(2, 3, 0);
    let remedy = "train it with --loo";
    assert!(message(loaded.predict_sets(x.clone(), 0.9)).contains(remedy));
    let mut parts = parts::<f64>([5, 3, 2], RBF, "none");
    parts.description.outputs = Outputs::Values { names: names(2) };
    let values = Model::new(parts).unwrap();
    assert!(message(values.predict_intervals(x.clone(), 0.9)).contains(remedy));
    // And each kind of model has its own.
    assert!(message(values.predict_sets(x.clone(), 0.9)).contains("ask it for intervals"));
    assert!(message(loaded.predict_intervals(x, 0.9)).contains("ask it for sets"));
}
