//! Models of some rows, fitted on all: on disk, seen in other ways, made smaller.

use std::io::Write;

use crate::common::{Folder, MNIST, number};

/// An NPY file of bytes: rows of waves, whose middle tells the class.
fn write_waves(folder: &Folder, rows: usize, width: usize) {
    let file = std::fs::File::create(folder.path("X.npy")).unwrap();
    let mut file = std::io::BufWriter::new(file);
    let mut labels = String::new();
    head(&mut file, "|u1", &format!("({rows}, {width})"));
    for i in 0..rows {
        let class = (i * 7919) % 3;
        let row: Vec<u8> = (0..width)
            .map(|j| {
                let noise = (i * 31 + j * 17) as u32;
                let noise = noise.wrapping_mul(2_654_435_761) >> 26;
                (40 * class) as u8 * u8::from(j % 50 == class) + noise as u8
            })
            .collect();
        file.write_all(&row).unwrap();
        labels.push((b'0' + class as u8) as char);
    }
    file.flush().unwrap();
    let mut file = std::fs::File::create(folder.path("y.npy")).unwrap();
    head(&mut file, "|u1", &format!("({rows},)"));
    file.write_all(labels.as_bytes()).unwrap();
}

/// The head of an NPY file.
fn head(file: &mut impl Write, kind: &str, shape: &str) {
    let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    let padded = format!("{text:<117}\n");
    file.write_all(b"\x93NUMPY\x01\x00\x76\x00").unwrap();
    file.write_all(padded.as_bytes()).unwrap();
}

#[test]
fn a_file_larger_than_memory_is_trained_on_within_it() {
    let folder = Folder::new();
    // 160 MB of bytes, 640 MB of f32.
    write_waves(&folder, 200_000, 800);
    folder.run(
        "train X.npy --method centers --centers 60 --iterations 2 --memory 200M --threads 2 \
         --validation 0.01 --json r.json --model m.lssvm",
    );
    let report = folder.json("r.json");
    for what in ["peak_memory_bytes", "planned_memory_bytes"] {
        let bytes = number(&report, what);
        assert!(bytes <= 200e6, "{what}: {bytes}");
    }
    assert_eq!(report["shape"][0], 198_000);
    let error = number(&report["validation"], "error_percent");
    // Two of three would be wrong by chance.
    assert!(error < 30.0, "{error}");
    // Chosen among as many rows as there is room for.
    folder.run(
        "train X.npy --centers 400 --select pivoted --iterations 1 --memory 200M --threads 2 \
         --validation 0.01 --json p.json",
    );
    let report = folder.json("p.json");
    assert_eq!(report["config"]["select"], "pivoted");
    for what in ["peak_memory_bytes", "planned_memory_bytes"] {
        let bytes = number(&report, what);
        assert!(bytes <= 200e6, "{what}: {bytes}");
    }
    // A method that needs all rows says so.
    folder.fails(
        "train X.npy --method mp --memory 200M",
        1,
        &["640.0 MB", "--method centers"],
    );
}

#[test]
fn many_rows_get_centres_without_being_asked() {
    let folder = Folder::new();
    write_waves(&folder, 200_000, 800);
    let plan = folder.run("plan X.npy --memory 200M").stdout;
    assert!(plan.contains("centers"), "{plan}");
    assert!(plan.contains("centres"), "{plan}");
    folder.fails(
        "train X.npy --method centers --centers 20000 --memory 200M",
        1,
        &["--centers", "--memory"],
    );
    folder.fails(
        "train X.npy --method centers --centers 0 --memory 200M",
        2,
        &["centers", "200000"],
    );
}

#[test]
fn centres_of_digits_come_near_the_full_solution_and_a_model_can_be_made_smaller() {
    let folder = Folder::new();
    let common = format!("train {MNIST} --train-rows 3000 --test {MNIST} --seed 3");
    folder.run(&format!("{common} --model full.lssvm --json full.json"));
    folder.run(&format!(
        "{common} --method centers --centers 1500 --json centers.json --model c.lssvm"
    ));
    let [full, centers] = ["full.json", "centers.json"].map(|name| {
        let report = folder.json(name);
        number(&report, "error_percent")
    });
    assert!(centers < full + 1.0, "{centers} and {full}");
    let said = folder.run("inspect c.lssvm").stdout;
    assert!(said.contains("1500"), "{said}");

    let line = format!(
        "compress full.lssvm --centers 800 --output small.lssvm --test {MNIST} --json cost.json"
    );
    folder.run(&line);
    let cost = folder.json("cost.json");
    assert_eq!(cost["rows"], serde_json::json!([3000, 800]));
    assert!(number(&cost, "changed_percent") < 3.0, "{cost}");
    let (before, after) = (
        number(&cost["before"], "error_percent"),
        number(&cost["after"], "error_percent"),
    );
    assert!((before - full).abs() < 1e-9, "{before} and {full}");
    assert!(after < before + 2.5, "{after} and {before}");
    folder.run(&format!("evaluate small.lssvm {MNIST}"));
    // The same choice of rows, the same file.
    folder.run(&line.replace("small.lssvm", "again.lssvm"));
    let bytes = |name: &str| std::fs::read(folder.path(name)).unwrap();
    assert!(bytes("small.lssvm") == bytes("again.lssvm"));
    folder.fails(
        "compress full.lssvm --centers 3000 --output x.lssvm",
        2,
        &["centers", "2999"],
    );
}

#[test]
fn digits_seen_in_other_ways_are_learned_better() {
    let folder = Folder::new();
    let error = |more: &str| {
        folder.run(&format!(
            "train {MNIST} --train-rows 600 --test {MNIST} --json r.json {more}"
        ));
        let report = folder.json("r.json");
        (
            report["shape"][0].as_u64().unwrap(),
            number(&report, "error_percent"),
        )
    };
    let (rows, plain) = error("--method exact");
    assert_eq!(rows, 600);
    let (rows, shifted) = error("--method exact --augment shift=1");
    assert_eq!(rows, 5400);
    assert!(shifted < plain - 0.5, "{shifted} and {plain}");
    let (rows, centers) = error("--method centers --centers 1500 --augment shift=1");
    assert_eq!(rows, 5400);
    assert!(centers < plain - 0.5, "{centers} and {plain}");
    let wrong = folder
        .command(&format!("train {MNIST} --augment zoom=2"))
        .output();
    let wrong = wrong.unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    let said = crate::common::Written::new(&wrong).stderr;
    assert!(said.contains("shift=PIXELS"), "{said}");
}
