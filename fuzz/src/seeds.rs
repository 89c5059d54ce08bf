//! The inputs that fuzzing begins with: small good ones of every kind.

use std::io::Write;

use lssvm::data::{self, ReadOptions};
use lssvm::linalg::{Matrix, Precision, Scalar};
use lssvm::model::Model;
use lssvm::solve::Silent;
use lssvm::train::{Config, Data, Trainer};

use super::checkpoint::{METHODS, kept, samples};
use super::model::{doubled, sparse};
use super::seal::{self, Kind};

/// Inputs of a target, with their names.
pub fn of(target: &str) -> Vec<(String, Vec<u8>)> {
    match target {
        "data" | "open" | "convert" => files(),
        "model" => models(),
        "checkpoint" => checkpoints(),
        "request" => texts(&REQUESTS),
        "options" => texts(&OPTIONS),
        _ => panic!("there is no target {target}"),
    }
}

fn texts(texts: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
    let text = |(name, text): &(&str, &str)| (name.to_string(), text.as_bytes().to_vec());
    texts.iter().map(text).collect()
}

/// Files of data, after the three bytes that say how they are read.
fn files() -> Vec<(String, Vec<u8>)> {
    let npy = |head: &str, values: &[u8]| {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((head.len() as u16 + 1).to_le_bytes());
        bytes.extend(head.as_bytes());
        bytes.push(b'\n');
        bytes.extend(values);
        bytes
    };
    let head = |kind: &str, fortran: &str, shape: &str| {
        format!("{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {shape}, }}")
    };
    let named =
        |name: &str, bytes: &[u8]| [format!("{name} {}\n", bytes.len()).as_bytes(), bytes].concat();
    let floats: Vec<u8> = (0..6)
        .flat_map(|i| (i as f32 / 4.0).to_le_bytes())
        .collect();
    let x = npy(&head("<f4", "False", "(2, 3)"), &floats);
    let y = npy(
        &head("<U3", "False", "(2,)"),
        "a\0\0\0b\0\0\0\0\0\0\0c\0\0\0\0\0\0\0\0\0\0\0".as_bytes(),
    );
    let table = "a,b,c\n1,2.5,red\n-3,4e2,green\n5,6,red\n";
    let mut all: Vec<(&str, [u8; 3], Vec<u8>)> = vec![
        ("csv", [4, 0, 0], table.into()),
        ("csv-any", [0, 0, 0], table.into()),
        ("csv-names", [4, 4, 2], table.into()),
        (
            "csv-columns",
            [4, 1, 0],
            "1;2;\"x;\n\"\"y\"\n3;4;z\n".into(),
        ),
        ("csv-weights", [4, 0, 1], "x,w,y\n1,0.5,2\n3,2,4.5\n".into()),
        ("csv-places", [4, 2, 20], "3,1,2,4,5\n6,1,7,8,9\n".into()),
        ("csv-spaces", [4, 0, 0], "1  2 3\n 4 5\t6\n".into()),
        ("csv-bars", [4, 16, 0], "1|2\r\n3|4\r\n".into()),
        (
            "libsvm",
            [3, 0, 0],
            "+1 1:0.5 3:2 # note\n-1 2:1\n\n".into(),
        ),
        ("libsvm-any", [0, 0, 0], "1 0:1 1:2\n0 1:3\n".into()),
        ("libsvm-features", [3, 2, 96], "a 1:1\nb 2:2 3:3\n".into()),
        (
            "idx",
            [1, 0, 0],
            [
                &[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2][..],
                &[1, 2, 3, 4],
            ]
            .concat(),
        ),
        (
            "idx-floats",
            [1, 8, 0],
            [
                &[0, 0, 0x0d, 2, 0, 0, 0, 1, 0, 0, 0, 1][..],
                &1.5f32.to_be_bytes(),
            ]
            .concat(),
        ),
        (
            "cifar",
            [2, 0, 0],
            (0..3073).map(|i| (i % 7) as u8).collect(),
        ),
        ("npy", [5, 16, 0], x.clone()),
        ("npy-labels", [5, 1, 0], x.clone()),
        (
            "npy-fortran",
            [5, 0, 0],
            npy(&head(">i2", "True", "(1, 2)"), &[0, 1, 0, 2]),
        ),
        (
            "npy-images",
            [0, 0, 0],
            npy(&head("|u1", "False", "(1, 2, 2)"), &[1, 2, 3, 4]),
        ),
        (
            "npy-half",
            [5, 0, 0],
            npy(&head("<f2", "False", "(1, 2)"), &[0, 60, 0, 64]),
        ),
        (
            "npz",
            [6, 0, 0],
            [named("x.npy", &x), named("y.npy", &y)].concat(),
        ),
        (
            "npz-parts",
            [6, 0, 0],
            [
                named("x_train.npy", &x),
                named("x_test.npy", &x),
                named("y_train.npy", &y),
            ]
            .concat(),
        ),
        ("gzip", [0, 0, 0], gzip(table)),
    ];
    let numbers = "1,2,0.5\n3,4,1.5\n5,600,2\n";
    let stored = [
        ("lssvm-names", table),
        ("lssvm-values", numbers),
        ("lssvm-libsvm", "+1 1:1\n-1 2:300\n"),
    ];
    for (name, text) in stored {
        all.push((
            name,
            [7, 0, 0],
            seal::open_container(&converted(text, None), Kind::Data),
        ));
    }
    let weighted = converted("x,w,y\n1,0.5,2\n3,2,4.5\n", Some(2));
    all.push((
        "lssvm-weights",
        [7, 0, 0],
        seal::open_container(&weighted, Kind::Data),
    ));
    all.push((
        "lssvm-order",
        [7, 4, 0],
        seal::open_container(&converted(table, None), Kind::Data),
    ));
    let input =
        |(name, how, file): (&str, [u8; 3], Vec<u8>)| (name.into(), [&how[..], &file].concat());
    all.into_iter().map(input).collect()
}

/// A text, packed but not made smaller, for which no packer is needed.
fn gzip(text: &str) -> Vec<u8> {
    let length = text.len() as u16;
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    bytes.extend(length.to_le_bytes());
    bytes.extend((!length).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(crc32(text.as_bytes()).to_le_bytes());
    bytes.extend(u32::from(length).to_le_bytes());
    bytes
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
    let byte = |crc: u32, &byte: &u8| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc));
    !bytes.iter().fold(!0, byte)
}

/// A text, converted to a file of our own.
fn converted(text: &str, weights: Option<i64>) -> Vec<u8> {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("a temporary file");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let options = ReadOptions {
        weights: weights.map(data::Column::Index),
        ..ReadOptions::default()
    };
    data::convert(file.path(), &out, &options, Precision::F32, &mut |_| true).expect("good data");
    std::fs::read(out).expect("it was just written")
}

/// Models of each kernel, of classes and values, with every step of preprocessing.
fn models() -> Vec<(String, Vec<u8>)> {
    let settings = [
        (
            "rbf",
            "kernel = 'rbf'\npreprocess = 'standardize'\nloo = true",
        ),
        (
            "poly",
            "kernel = 'poly'\ndegree = 3\npreprocess = 'center,unit-norm'",
        ),
        ("laplacian", "kernel = 'laplacian'\npreprocess = 'min-max'"),
        ("sigmoid", "kernel = 'sigmoid'\npreprocess = 'none'"),
        (
            "images",
            "kernel = 'linear'\nimage-shape = '1x2'\npreprocess = 'window,fourier'",
        ),
    ];
    let mut all = Vec::new();
    for (name, settings) in settings {
        let config: Config = toml::from_str(settings).expect("good settings");
        all.push((name.to_string(), opened(&trained(&config, false))));
    }
    let config: Config = toml::from_str("loo = true").expect("good settings");
    all.push(("values".into(), opened(&doubled(&trained(&config, true)))));
    all.push(("sparse".into(), opened(&sparse(&trained(&config, false)))));
    all
}

fn opened<T: Scalar>(model: &Model<T>) -> Vec<u8> {
    seal::open_container(&model.to_bytes().expect("a small model"), Kind::Model)
}

fn trained(config: &Config, values: bool) -> Model<f32> {
    let mut train = samples().train.head(6);
    if values {
        let y = Matrix::from_fn(6, 2, |i, j| (i * i + j) as f64);
        train.labels = Some(data::Labels::from_values(y).expect("finite values"));
    }
    let data = Data {
        train,
        validation: None,
        test: None,
    };
    let config = Config {
        threads: Some(1),
        ..config.clone()
    };
    Trainer::new(&config)
        .fit(data, &mut Silent)
        .expect("a small run")
        .0
}

fn checkpoints() -> Vec<(String, Vec<u8>)> {
    let checkpoint = |method: lssvm::solve::Method| {
        let name = method.to_string();
        let input = seal::open_checkpoint(&kept(method, 2), &name);
        (name, input)
    };
    let mut all: Vec<_> = METHODS.map(checkpoint).into();
    all.push(("file".into(), kept(METHODS[0], 1)));
    all
}

const REQUESTS: [(&str, &str); 10] = [
    (
        "infer",
        "{\"id\":\"1\",\"inputs\":[{\"name\":\"x\",\"shape\":[1,6],\"datatype\":\"FP32\",\"data\":[1,2,3,4.5,-5e0,6]}],\"outputs\":[{\"name\":\"class\"}]}",
    ),
    (
        "images",
        "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,1,2,3],\"datatype\":\"UINT8\",\"data\":[[[[1,2,3],[4,5,6]]]]}],\"parameters\":{\"class\":\"a\",\"count\":2}}",
    ),
    (
        "outputs",
        "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,6],\"datatype\":\"INT64\",\"data\":[1,2,3,4,5,6]}],\"outputs\":[{\"name\":\"scores\"},{\"name\":\"probabilities\"}]}",
    ),
    (
        "values",
        "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,2,3],\"datatype\":\"FP64\",\"data\":[[[1,2,3],[4,5,6]]]}],\"outputs\":[{\"name\":\"values\"}]}",
    ),
    ("numbers", "[1, -2.5e-3, 12345678901234567890, 0.1, 1E5, 0]"),
    (
        "get",
        "GET /v2/models/m HTTP/1.1\r\nHost: localhost:80\r\nConnection: close\r\n\r\nGET /metrics HTTP/1.0\r\n\r\n",
    ),
    (
        "pages",
        "GET / HTTP/1.1\r\nHost: [::1]\r\n\r\nGET /v2/health/live?a=b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ),
    (
        "post",
        "POST /v2/models/m/versions/1/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n{}",
    ),
    (
        "chunks",
        "POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1;a=b\r\n}\r\n0\r\nA: b\r\n\r\n",
    ),
    (
        "binary",
        "POST /v2/models/m/explain HTTP/1.1\r\nHost: localhost\r\nInference-Header-Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    ),
];

const OPTIONS: [(&str, &str); 12] = [
    (
        "steps",
        "center,unit-norm,window:first=0,fourier:transform=1d-channel",
    ),
    ("columns", "standardize,min-max"),
    ("fourier", "fourier:exponent=0.3:transform=2d:order=rows"),
    ("augment", "shift=1,flip,rotate=10.5"),
    ("image", "3x32x32"),
    ("column", "-1"),
    ("size", "1.5GiB"),
    ("gamma", "0.25"),
    ("classes", "balanced"),
    ("class", "a=2,b=0.5"),
    (
        "settings",
        "task = 'classification'\nkernel = 'rbf'\ngamma = 'scale'\nc = 10.0\nmethod = 'mp'\nblock-size = 4\niterations = 3\naverages = 2\nvalidation = 0.3\nseed = 1\n",
    ),
    (
        "more",
        "image-shape = '4x4'\naugment = 'flip'\npreprocess = 'window,fourier'\nkernel = 'poly'\ndegree = 2\ncoef0 = 1\nmethod = 'centers'\ncenters = 3\nmemory = '2G'\nloo = false\n[class-weight]\n'0' = 2\n",
    ),
];
