//! `lssvm train`: every format, method, kernel and precision, and the report.

use std::fmt::Write;

use crate::common::*;

const KERNELS: [&str; 5] = ["linear", "poly", "rbf", "laplacian", "sigmoid"];

#[test]
fn a_single_pass_keeps_no_kernel_matrix() {
    let folder = Folder::with_flowers();
    for (passes, kept) in [(1, serde_json::Value::Null), (2, "full".into())] {
        let line =
            format!("train train.csv --method gauss-seidel --iterations {passes} --json r.json");
        folder.run(&line);
        let report = folder.json("r.json");
        assert_eq!(report["kernel_kept"], kept, "{passes}");
        assert_eq!(report["relative_residual_exact"], true);
    }
}

#[test]
fn every_method_kernel_and_precision_learns() {
    let folder = Folder::with_flowers();
    for method in METHODS {
        for kernel in KERNELS {
            for precision in ["f32", "f64"] {
                // tanh is a good kernel of small arguments only; a linear
                // kernel can tell these three classes apart as well.
                let gamma = match kernel {
                    "sigmoid" => "0.01",
                    "poly" => "0.5",
                    _ => "scale",
                };
                let line = format!(
                    "train . --model m --method {method} --kernel {kernel} --gamma {gamma} \
                     --precision {precision} --degree 2 --coef0 1 --block-size 60 \
                     --iterations 30 --threads 2 --json r.json"
                );
                folder.run(&line);
                let report = folder.json("r.json");
                let error = number(&report, "error_percent");
                assert!(error < 10.0, "{line}: {error} %");
                assert_eq!(report["config"]["method"], method);
                assert_eq!(report["config"]["kernel"], kernel);
                assert_eq!(report["config"]["precision"], precision);
                let inspected = folder.run("inspect m --json").stdout;
                assert!(inspected.contains(&format!("\"precision\": \"{precision}\"")));
            }
        }
    }
}

#[test]
fn the_report_has_everything() {
    let folder = Folder::with_flowers();
    let line = "train . --model m --method mp --block-size 50 --iterations 7 --tolerance 0 \
                --validation 0.2 --json r.json";
    let written = folder.run(line);
    let report = folder.json("r.json");
    assert!(number(&report, "error_percent") < 10.0);
    assert!(number(&report["validation"], "error_percent") < 10.0);
    assert!(number(&report, "seconds") > 0.0);
    assert_eq!(report["iterations"], 7);
    assert_eq!(report["stopped"], "iterations");
    assert!((0.0..1.0).contains(&number(&report, "relative_residual")));
    assert!(number(&report, "peak_memory_bytes") > 1e6);
    assert_eq!(report["config"]["block-size"], 50);
    assert_eq!(report["config"]["validation"], 0.2);

    let history = report["history"].as_array().unwrap();
    assert_eq!(history.len(), 7);
    for (i, line) in history.iter().enumerate() {
        assert_eq!(line["iteration"], i + 1);
        assert!(number(line, "seconds") > 0.0);
        assert!((0.0..=100.0).contains(&number(line, "error_percent")));
        assert!((0.0..=100.0).contains(&number(line, "validation_error_percent")));
        assert!(number(line, "relative_residual") >= 0.0);
    }

    let phases = report["phases"].as_object().unwrap();
    for name in ["kernel", "gram", "factor", "update", "follow"] {
        assert!(phases.contains_key(name), "{name} in {phases:?}");
    }
    for phase in phases.values() {
        assert!(number(phase, "seconds") > 0.0);
        assert!(number(phase, "gflops") >= 0.0);
    }

    let confusion = &report["confusion"];
    assert_eq!(confusion["classes"], serde_json::json!(SPECIES));
    let counts = confusion["counts"].as_array().unwrap().iter();
    let all: u64 = counts
        .flat_map(|row| row.as_array().unwrap())
        .map(|count| count.as_u64().unwrap())
        .sum();
    assert_eq!(all, 60);

    assert!(
        written.stdout.contains("7 iterations"),
        "{}",
        written.stdout
    );
    assert!(written.stdout.contains("% wrong of 60 rows"));
    assert!(written.stderr.contains("120 rows, 3 features, 3 outputs"));
}

#[test]
fn nothing_moves_when_piped() {
    let folder = Folder::with_flowers();
    let line = "train . --model m --method mp --block-size 20 --iterations 50";
    let written = folder.run(line);
    for text in [&written.stdout, &written.stderr] {
        assert!(!text.contains(['\x1b', '\r', '█', '░']), "{text:?}");
    }
    assert_eq!(written.stderr.lines().count(), 1, "{}", written.stderr);
}

#[test]
fn json_on_standard_output_is_all_there_is() {
    let folder = Folder::with_flowers();
    let written = folder.run("train . --model m --json -");
    let report: serde_json::Value = serde_json::from_str(&written.stdout).unwrap();
    assert_eq!(report["stopped"], "solved");
    assert!(written.stderr.contains("% wrong of 60 rows"));
    let written = folder.run("evaluate m test.csv --json -");
    let result: serde_json::Value = serde_json::from_str(&written.stdout).unwrap();
    assert_eq!(result["rows"], 60);
}

#[test]
fn without_a_name_the_model_is_not_kept() {
    let folder = Folder::with_flowers();
    let before = folder.names();
    let written = folder.run("train .");
    assert!(written.stderr.contains("--model FILE"));
    assert_eq!(folder.names(), before);
}

#[test]
fn tables_with_tabs_semicolons_and_no_header() {
    let folder = Folder::new();
    for (name, separator) in [("t.tsv", "\t"), ("t.txt", ";")] {
        let rows = |range| flowers(range).replace(',', separator);
        folder.write(name, rows(0..150));
        folder.write("test.tsv", rows(150..210));
        folder.run(&format!(
            "train {name} --label species --test test.tsv --model m --json r.json"
        ));
        let report = folder.json("r.json");
        assert!(number(&report, "error_percent") < 10.0);
        assert_eq!(report["confusion"]["classes"][0], SPECIES[0]);
    }
    let headless = |range| flowers(range).split_once('\n').unwrap().1.to_string();
    folder.write("h.csv", headless(0..150));
    folder.write("htest.csv", headless(150..210));
    folder.run("train h.csv --label -1 --test htest.csv --model m --json r.json");
    assert!(number(&folder.json("r.json"), "error_percent") < 10.0);
}

#[test]
fn libsvm_text() {
    let folder = Folder::new();
    folder.write("train.txt", libsvm(0..150, true));
    folder.write("test.txt", libsvm(150..210, true));
    folder.run("train . --model m --json r.json");
    let report = folder.json("r.json");
    assert!(number(&report, "error_percent") < 10.0);
    let classes = serde_json::json!(["-1", "+1"]);
    assert_eq!(report["confusion"]["classes"], classes);
    assert_eq!(report["shape"], serde_json::json!([150, 3, 2]));
}

#[test]
fn images_get_the_settings_for_images() {
    let folder = Folder::new();
    write_bars(&folder, "train", 120);
    write_bars(&folder, "t10k", 30);
    folder.run("train . --model m --json r.json");
    let report = folder.json("r.json");
    assert!(number(&report, "error_percent") < 5.0);
    let config = &report["config"];
    assert_eq!(config["kernel"], "poly");
    assert_eq!(config["degree"], 4);
    assert_eq!(config["c"], 1e4);
    assert!(folder.run("inspect m").stdout.contains("4 × 4 images"));
    // The images alone find the labels beside them.
    folder.run("train train-images-idx3-ubyte --model m2 --json r2.json");
    assert!(folder.json("r2.json").get("error_percent").is_none());
}

#[test]
fn numpy_arrays() {
    let folder = Folder::new();
    let features: Vec<f64> = (0..150).flat_map(flower).collect();
    let labels: Vec<f64> = (0..150).map(|i| (i % 3) as f64).collect();
    folder.write("X.npy", npy(&[150, 3], &features));
    folder.write("y.npy", npy(&[150], &labels));
    folder.run("train X.npy --validation 0.3 --model m --json r.json");
    let report = folder.json("r.json");
    assert!(number(&report["validation"], "error_percent") < 10.0);
    assert_eq!(folder.predictions("m X.npy").len(), 150);
}

#[test]
fn regression_with_one_and_two_targets() {
    let folder = Folder::new();
    folder.write("train.csv", curves(0..300));
    folder.write("test.csv", curves(300..400));
    for (method, more) in [("exact", ""), ("mp", "--block-size 150 --iterations 20")] {
        folder.run(&format!(
            "train . --label a,b --model m --method {method} {more} -c 1e4 --json r.json"
        ));
        let report = folder.json("r.json");
        assert!(number(&report, "r2") > 0.99, "{method}: {}", report["r2"]);
        assert!(
            number(&report, "rmse") < 0.3,
            "{method}: {}",
            report["rmse"]
        );
        assert_eq!(report["outputs"].as_array().unwrap().len(), 2);
        let last = report["history"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .clone();
        assert!(number(&last, "rmse") > 0.0);
        assert!(last.get("error_percent").is_none());
        assert!(report.get("error_percent").is_none());
        assert!(report.get("confusion").is_none());
    }
    let written = folder.run("train train.csv --label b --validation 0.2 --model m1");
    assert!(written.stdout.contains("R²"), "{}", written.stdout);
}

#[test]
fn whole_numbers_can_be_values() {
    let folder = Folder::new();
    let rows: String = (0..60).map(|i| format!("{i},{}\n", 2 * i)).collect();
    folder.write("d.csv", format!("x,y\n{rows}"));
    folder.run("train d.csv --task regression --model m --test d.csv --json r.json");
    assert!(number(&folder.json("r.json"), "r2") > 0.9);
    folder.run("train d.csv --model m --test d.csv --json r.json");
    assert!(folder.json("r.json").get("confusion").is_some());
}

#[test]
fn constant_features_zero_rows_and_duplicates() {
    let folder = Folder::new();
    let mut table = String::from("a,b,c,class\n");
    for i in 0..90 {
        let [a, b, _] = flower(i);
        // The last column is constant, and every row comes three times.
        let line = format!("{a:.3},{b:.3},7,k{}\n", i % 3);
        table.push_str(&line.repeat(3));
        table.push_str(&format!("0,0,7,k{}\n", i % 3));
    }
    folder.write("d.csv", &table);
    for method in METHODS {
        for preprocess in ["none", "standardize", "center,unit-norm", "min-max"] {
            folder.run(&format!(
                "train d.csv --model m --method {method} --preprocess {preprocess} \
                 --test d.csv --json r.json"
            ));
            let error = number(&folder.json("r.json"), "error_percent");
            // Two thirds of the zero rows, a quarter of all, cannot be right.
            let most = if preprocess.starts_with("center") {
                60.0
            } else {
                25.0
            };
            assert!(error <= most, "{method} {preprocess}: {error} %");
        }
    }
    // All features constant: nothing to learn, and no failure.
    folder.write("c.csv", "a,b,class\n1,1,x\n1,1,y\n1,1,x\n1,1,x\n");
    for method in METHODS {
        folder.run(&format!("train c.csv --model m --method {method}"));
        assert_eq!(folder.predictions("m c.csv"), ["x"; 4], "{method}");
    }
}

#[test]
fn the_same_seed_gives_the_same_model() {
    let folder = Folder::with_flowers();
    for method in METHODS {
        let line = format!(
            "train . --method {method} --seed 5 --threads 2 --block-size 40 --iterations 4 \
             --averages 2 --model"
        );
        folder.run(&format!("{line} a"));
        folder.run(&format!("{line} b"));
        let bytes = |model: &str| std::fs::read(folder.path(model)).unwrap();
        assert!(bytes("a") == bytes("b"), "{method}: the model files differ");
    }
    let line = "train . --method mp --block-size 40 --iterations 2 --seed";
    folder.run(&format!("{line} 1 --model a"));
    folder.run(&format!("{line} 2 --model b"));
    let scores = |model: &str| folder.predictions(&format!("{model} test.csv --scores"));
    assert_ne!(scores("a"), scores("b"), "the seed chooses the blocks");
}

#[test]
fn limits_end_a_run() {
    let folder = Folder::with_flowers();
    let stopped = |more: &str| {
        folder.run(&format!(
            "train . --model m --method mp --block-size 40 --json r.json {more}"
        ));
        folder.json("r.json")["stopped"].clone()
    };
    assert_eq!(stopped("--iterations 1 --tolerance 0"), "iterations");
    assert_eq!(
        stopped("--iterations 1000000 --time 0.05 --tolerance 0"),
        "time"
    );
    assert_eq!(stopped("--iterations 1000 --tolerance 1e-2"), "tolerance");
    let patience = "--iterations 1000 --tolerance 0 --validation 0.2 --patience 3";
    assert_eq!(stopped(patience), "patience");
    let report = folder.json("r.json");
    let best = number(&report, "best_iteration");
    assert_eq!(best + 3.0, number(&report, "iterations"));
}

#[test]
fn following_can_be_left_to_the_end() {
    let folder = Folder::with_flowers();
    let line = "train . --model m --method kaczmarz --block-size 40 --iterations 5 --follow 0 \
                --tolerance 0 --json r.json";
    folder.run(line);
    let report = folder.json("r.json");
    let history = report["history"].as_array().unwrap();
    assert!(
        history[..4]
            .iter()
            .all(|l| l.get("error_percent").is_none())
    );
    assert!(number(&report, "error_percent") < 30.0);
}

#[test]
fn handwritten_digits() {
    let folder = Folder::new();
    for (method, most) in [("mp --block-size 300 --iterations 20", 5.0), ("exact", 4.5)] {
        folder.run(&format!(
            "train {MNIST} --train-rows 3000 --method {method} --follow 0 --model m --json r.json"
        ));
        let report = folder.json("r.json");
        let error = number(&report, "error_percent");
        assert!(error < most, "{method}: {error} %");
        assert_eq!(report["rows"], 10_000);
    }
    // The model finds the test part by itself.
    folder.run(&format!("evaluate m {MNIST} --json e.json"));
    let again = number(&folder.json("e.json"), "error_percent");
    let error = number(&folder.json("r.json"), "error_percent");
    assert!((again - error).abs() < 0.021, "{again} and {error}");
}

/// Two clouds that overlap, one with few rows: x, weight, class.
fn uneven_clouds(weight: impl Fn(usize) -> f64) -> String {
    let mut text = "x,w,kind\n".to_string();
    for i in 0..120 {
        let rare = i % 8 == 0;
        let x = (i as f64 * 0.7).sin() + if rare { 1.2 } else { 0.0 };
        let kind = if rare { "rare" } else { "common" };
        writeln!(text, "{x},{},{kind}", weight(i)).unwrap();
    }
    text
}

#[test]
fn balanced_classes_find_the_rare_one() {
    let folder = Folder::new();
    folder.write("d.csv", uneven_clouds(|_| 1.0));
    let found = |options: &str| {
        folder.run(&format!("train d.csv --weights w --model m {options}"));
        let told = folder.run("predict m d.csv").stdout;
        told.lines().filter(|line| line.contains("rare")).count()
    };
    let (plain, balanced) = (found(""), found("--class-weight balanced"));
    assert!(balanced > plain + 5, "{plain}, {balanced}");
    // The same by name: 120 / (2 · 15) and 120 / (2 · 105).
    let named = found("--class-weight rare=4,common=0.5714285714285714");
    assert_eq!(named, balanced);
    let method = "--class-weight balanced --method pcg --tolerance 1e-6";
    assert_eq!(found(method), balanced);
    let written = folder.run("inspect m --config").stdout;
    assert!(written.contains("class-weight = \"balanced\""), "{written}");
}

#[test]
fn weights_are_read_from_a_column() {
    let folder = Folder::new();
    // Rows of weight 2 are worth two, those of weight 0 nothing.
    folder.write("weighted.csv", uneven_clouds(|i| (i % 3) as f64));
    let (mut repeated, plain) = ("x,w,kind\n".to_string(), uneven_clouds(|_| 1.0));
    for (i, line) in plain.lines().skip(1).enumerate() {
        (0..i % 3).for_each(|_| writeln!(repeated, "{line}").unwrap());
    }
    folder.write("repeated.csv", repeated);
    folder.write("new.csv", plain);
    let scores = |data: &str| {
        let line = format!("train {data} --weights w --preprocess none --gamma 1 --precision f64");
        folder.run(&format!("{line} --model m --json r.json"));
        folder.run("predict m new.csv --scores --output s.csv");
        let text = folder.read("s.csv");
        let numbers = text.split([',', '\n']).filter_map(|v| v.parse().ok());
        numbers.collect::<Vec<f64>>()
    };
    let (weighted, repeated) = (scores("weighted.csv"), scores("repeated.csv"));
    assert!(weighted.len() >= 240);
    for (a, b) in weighted.iter().zip(&repeated) {
        assert!((a - b).abs() < 1e-8, "{a}, {b}");
    }
    folder.write("bad.csv", uneven_clouds(|i| 1.0 - i as f64));
    let place = "bad.csv, line 4, column 2: column 'w': the weight '-1'";
    folder.fails("train bad.csv --weights w", 1, &[place]);
    let unknown = "train new.csv --weights w --class-weight egg=2";
    folder.fails(unknown, 2, &["there is no class 'egg'"]);
}

#[test]
fn weights_do_not_change_how_errors_are_counted() {
    let folder = Folder::new();
    folder.write("d.csv", uneven_clouds(|i| 0.3 + (i % 3) as f64));
    let line = "train d.csv --weights w --class-weight balanced --loo --json r.json";
    folder.run(line);
    let loo = folder.json("r.json")["leave_one_out"].clone();
    let wrong = number(&loo, "error_percent") * number(&loo, "rows") / 100.0;
    assert!(wrong >= 1.0, "{loo}");
    assert!(
        (wrong - wrong.round()).abs() < 1e-9,
        "{wrong} rows are wrong"
    );
}

#[test]
fn leave_one_out_errors_and_probabilities() {
    let folder = Folder::with_flowers();
    let probabilities = |options: &str| {
        folder.run(&format!("train . --model m --json r.json {options}"));
        folder.run("predict m test.csv --probabilities --output p.csv");
        let text = folder.read("p.csv");
        let largest = text.lines().skip(1).map(|line| {
            let numbers = line.split(',').filter_map(|v| v.parse::<f64>().ok());
            numbers.fold(0.0, f64::max)
        });
        largest.sum::<f64>() / (text.lines().count() - 1) as f64
    };
    let bare = probabilities("");
    assert!(bare < 0.6, "{bare}");
    let calibrated = probabilities("--loo");
    assert!(calibrated > 0.8, "{calibrated}");
    let report = folder.json("r.json");
    let error = number(&report["leave_one_out"], "error_percent");
    assert!(error < 10.0, "{error}");
    assert_eq!(report["leave_one_out"]["rows"], 150);
    assert!(number(&report["scaling"], "slope") > 2.0);
    let told = folder.run("train . --loo").stdout;
    assert!(told.contains("leave-one-out"), "{told}");
    assert!(told.contains("wrong of 150 rows"), "{told}");
    // Validation rows do it too, for any method.
    let validated = probabilities("--method mp --block-size 50 --validation 0.3");
    assert!(validated > 0.8, "{validated}");
    folder.fails("train . --loo --method mp", 2, &["loo = true", "exact"]);
}

#[test]
fn leave_one_out_errors_are_estimated_where_there_is_no_factor() {
    // Up to 192 rows would be solved for one by one.
    let folder = Folder::new();
    folder.write("train.csv", flowers(0..300));
    folder.write("test.csv", flowers(300..360));
    folder.run("train . --loo --json exact.json");
    let line = "train . --loo --method pcg --model m --report page.html --json r.json";
    let told = folder.run(line).stdout;
    assert!(told.contains("± 0."), "{told}");
    assert!(
        told.contains("an estimate: 64 probes of all rows"),
        "{told}"
    );
    let (exact, report) = (folder.json("exact.json"), folder.json("r.json"));
    let (exact, found) = (&exact["leave_one_out"], &report["leave_one_out"]);
    assert!(exact.get("estimate").is_none());
    assert_eq!(found["estimate"]["probes"], 64);
    assert!(number(&found["estimate"], "solved_rows") >= 32.0);
    let off = number(found, "error_percent") - number(exact, "error_percent");
    // Four rows of 300.
    assert!(off.abs() < 1.5, "{off}");
    assert!(folder.read("page.html").contains("an estimate: 64 probes"));
    folder.run("predict m test.csv --probabilities --output p.csv");
    folder.run("predict m test.csv --sets 0.9 --output s.csv");
    let options = "train . --loo --method pcg --validation 0.2";
    folder.fails(options, 2, &["loo = true", "choose the iteration"]);
    let told = folder
        .run("train . --loo --method pcg --iterations 1 --rank 1")
        .stdout;
    assert!(
        told.contains("no scores: they follow from the solution"),
        "{told}"
    );
}

#[test]
fn a_rare_class_is_learned_beside_validation_rows() {
    let folder = Folder::new();
    let mut text = flowers(0..90);
    text += "9,9,9,rare\n9,9,8,rare\n-9,-9,-9,single\n";
    folder.write("d.csv", text);
    for seed in 1..8 {
        let line = format!("train d.csv --validation 0.2 --seed {seed} --model m --json r.json");
        folder.run(&line);
        let report = folder.json("r.json");
        let classes = report["validation"]["classes"].as_array().unwrap();
        assert_eq!(classes.len(), 5);
    }
}

#[test]
fn the_history_ends_with_the_final_rmse() {
    let folder = Folder::new();
    folder.write("train.csv", curves(0..200));
    folder.write("test.csv", curves(200..260));
    // Targets of very different sizes: a pooled error would be that of the larger.
    for method in [
        "exact",
        "mp --block-size 40 --iterations 6 --tolerance 0",
        "pcg",
    ] {
        folder.run(&format!(
            "train . --label a,b --precision f64 --json r.json --method {method}"
        ));
        let report = folder.json("r.json");
        let last = report["history"].as_array().unwrap().last().unwrap();
        let (last, rmse) = (number(last, "rmse"), number(&report, "rmse"));
        assert!(
            (last - rmse).abs() < 1e-9 * rmse,
            "{method}: {last}, {rmse}"
        );
        let outputs = report["outputs"].as_array().unwrap();
        let mean = outputs.iter().map(|o| number(o, "rmse")).sum::<f64>() / 2.0;
        assert!((mean - rmse).abs() < 1e-12, "{mean}, {rmse}");
    }
}

#[test]
fn a_format_that_is_chosen_holds_for_all_files() {
    let folder = Folder::new();
    folder.write("train.txt", libsvm(0..60, true));
    // Rows of zeros alone look like a table of one column.
    folder.write("zeros.txt", "+1\n-1\n-1\n");
    let line = "train train.txt --format libsvm --json r.json";
    folder.run(&format!("{line} --test zeros.txt"));
    assert_eq!(folder.json("r.json")["rows"], 3);
    folder.run(&format!("{line} --validation zeros.txt"));
    assert_eq!(folder.json("r.json")["validation"]["rows"], 3);
}

#[test]
fn a_table_of_images_has_its_gallery() {
    let folder = Folder::new();
    let (images, labels) = bars(90);
    let row = |i: usize| {
        let pixels = images[16 * i..16 * (i + 1)].iter();
        let pixels: Vec<String> = pixels.map(u8::to_string).collect();
        // A wrong label, so that there is something to show.
        let label = if i == 80 {
            (labels[i] + 1) % 3
        } else {
            labels[i]
        };
        format!("{label},{}\n", pixels.join(","))
    };
    folder.write("train.csv", (0..60).map(row).collect::<String>());
    folder.write("test.csv", (60..90).map(row).collect::<String>());
    let line = "train train.csv --test test.csv --label 1 --report r.html";
    folder.run(line);
    assert!(!folder.read("r.html").contains("data:image/png"));
    folder.run(&format!("{line} --image-shape 4x4"));
    assert!(folder.read("r.html").contains("data:image/png"));
    folder.fails(
        &format!("{line} --image-shape 4x5"),
        2,
        &["image-shape", "16 features"],
    );
}

#[test]
fn a_test_part_without_labels_is_left_out() {
    let folder = Folder::new();
    let unlabelled = |rows: String| -> String {
        let bare = rows.lines().map(|line| line.rsplit_once(',').unwrap().0);
        bare.map(|line| format!("{line}\n")).collect()
    };
    folder.write("train.csv", flowers(0..150));
    folder.write("test.csv", unlabelled(flowers(150..210)));
    let written = folder.run("train . --model m --json r.json");
    for part in ["test.csv", "no labels", "without a test part"] {
        assert!(written.stderr.contains(part), "{}", written.stderr);
    }
    assert!(folder.json("r.json").get("error_percent").is_none());
    assert_eq!(
        folder.predictions("m .").len(),
        60,
        "its rows can be predicted"
    );

    // A test file that was named is expected to be one.
    folder.fails(
        "train train.csv --test test.csv",
        1,
        &["test.csv", "no labels"],
    );
    folder.write("labelled.csv", flowers(150..210));
    let written = folder.run("train . --test labelled.csv --json r.json");
    assert!(!written.stderr.contains("no labels"), "{}", written.stderr);
    assert_eq!(folder.json("r.json")["rows"], 60);
}

#[test]
fn times_count_from_the_start_of_the_run() {
    let folder = Folder::with_flowers();
    folder.run("train . --method pcg --json r.json");
    let report = folder.json("r.json");
    let history = report["history"].as_array().unwrap();
    let first = number(&history[0], "seconds");
    let kernel = number(&report["phases"]["kernel"], "seconds");
    assert!(first >= kernel, "{first} s, and {kernel} s for the kernel");
    let last = number(history.last().unwrap(), "seconds");
    assert!(last <= number(&report, "seconds"));
}
