//! What must hold of every page, without a browser.

mod sample;

use lssvm::data::Task;
use lssvm::linalg::Matrix;
use lssvm::model::HeldOut;
use lssvm::solve::Truth;
use lssvm::train::{Estimate, Evaluation, Report};
use lssvm_report::{
    Axis, Block, Gallery, Heatmap, Page, Picture, Plot, Run, Scale, Section, Series, Table, Tile,
    training_page,
};

const HOSTILE: &str = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>&\u{0}";

fn page_with(blocks: Vec<Block>) -> Page {
    let mut page = Page::new(HOSTILE, HOSTILE);
    page.fact(HOSTILE, HOSTILE);
    let mut section = Section::new(HOSTILE, HOSTILE);
    section.text.push(HOSTILE.into());
    section.blocks = blocks;
    page.sections = vec![section.clone(), section.clone(), section];
    page
}

fn plot(points: Vec<(f64, f64)>) -> Plot {
    let mut plot = Plot::new(HOSTILE, HOSTILE, Axis::new(HOSTILE), Axis::new(HOSTILE));
    plot.series.push(Series::line(HOSTILE, points));
    plot
}

fn picture() -> Picture {
    let pixels = (0..5 * 4 * 3).map(|i| (i * 4) as u8).collect();
    Picture {
        width: 5,
        height: 4,
        channels: 3,
        pixels,
    }
}

fn hostile_page() -> Page {
    let names = vec![HOSTILE.to_string(), "b".into()];
    let mut plot = plot(vec![(0.0, 1.0), (1.0, 2.0)]);
    plot.marks.push(lssvm_report::Mark::new(HOSTILE, 1.5));
    page_with(vec![
        Block::Plot(plot),
        Block::Table(Table::new(HOSTILE, [HOSTILE], [[HOSTILE]])),
        Block::Heatmap(Heatmap {
            name: HOSTILE.into(),
            title: HOSTILE.into(),
            rows: names.clone(),
            columns: names,
            values: vec![vec![5.0, 1.0], vec![0.0, f64::NAN]],
            row_label: HOSTILE.into(),
            column_label: HOSTILE.into(),
            unit: HOSTILE.into(),
            decimals: None,
        }),
        Block::Gallery(Gallery {
            title: HOSTILE.into(),
            tiles: vec![Tile {
                picture: picture(),
                caption: HOSTILE.into(),
                title: HOSTILE.into(),
            }],
            note: Some(HOSTILE.into()),
        }),
    ])
}

#[test]
fn hostile_text_stays_text() {
    let html = hostile_page().to_html();
    // One script is ours.
    assert_eq!(html.matches("<script").count(), 1);
    assert!(!html.contains("<img src=x"));
    assert!(!html.contains("\"><img src=x"));
    assert!(!html.contains('\u{0}'));
    assert_eq!(html.matches("id=\"script-alert").count(), 3);
    assert!(
        html.contains("-img-src-x-onerror-alert-1-2\""),
        "two anchors are the same"
    );
}

#[test]
fn pages_ask_the_network_for_nothing() {
    for html in [hostile_page().to_html(), sample::paper().to_html()] {
        let rest = html.replace("http://www.w3.org/2000/svg", "");
        assert!(!rest.contains("http://") && !rest.contains("https://"));
        assert!(!rest.contains("@import") && !rest.contains("url("));
        assert!(rest.contains("default-src 'none'"));
        assert!(rest.contains("prefers-color-scheme: dark"));
    }
}

#[test]
fn odd_series_draw_no_garbage() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let cases = [
        vec![],
        vec![(1.0, 1.0)],
        vec![(nan, nan)],
        vec![(0.0, nan), (1.0, 2.0), (2.0, inf), (3.0, 4.0), (4.0, -inf)],
        vec![(0.0, 0.0), (0.0, 0.0)],
        vec![(1.0, f64::MAX), (2.0, -f64::MAX)],
        vec![(1e300, 1e-300), (-1e300, 1e300)],
        vec![(1.0, 5e-324), (2.0, 1e-310)],
        vec![(-1.0, -1.0), (0.0, 0.0)],
        (0..100_000)
            .map(|i| (f64::from(i), f64::from(i % 7)))
            .collect(),
    ];
    for points in cases {
        for scale in [Scale::Linear, Scale::Log] {
            for style in [Series::line, Series::dots, Series::bars] {
                let mut plot = Plot::new("p", "p", Axis::new("x").scale(scale), Axis::new("y"));
                plot.y.scale = scale;
                plot.diagonal = true;
                // Every dot and bar is drawn, so long clouds are for the caller to thin.
                let few = points.len().min(5_000);
                plot.series.push(style("s", points[..few].to_vec()));
                let svg = plot.to_svg();
                let text = format!("{:?} {scale:?}", &points[..few.min(5)]);
                assert!(
                    !svg.contains("NaN") && !svg.contains("inf"),
                    "{text}: {svg}"
                );
                assert!(svg.ends_with("</svg>"));
            }
        }
        let line = plot(points.clone()).to_svg();
        assert!(
            line.len() < 60_000,
            "{} bytes for {} points",
            line.len(),
            points.len()
        );
    }
    assert!(plot(vec![]).to_svg().contains("no values to show"));
    assert!(
        !plot(vec![(1.0, 1.0)])
            .to_svg()
            .contains("no values to show")
    );
}

#[test]
fn missing_values_break_a_line() {
    let svg = plot(vec![
        (0.0, 1.0),
        (1.0, 2.0),
        (2.0, f64::NAN),
        (3.0, 1.0),
        (4.0, 2.0),
    ])
    .to_svg();
    let path = svg.split("d=\"").find(|d| d.matches('L').count() == 2);
    let path = path
        .expect("a path of two parts")
        .split('"')
        .next()
        .unwrap();
    assert_eq!(path.matches('M').count(), 2, "{path}");
}

#[test]
fn plots_have_names_and_ticks() {
    let page = sample::paper();
    let Block::Plot(plot) = &page.sections[0].blocks[0] else {
        panic!("a plot");
    };
    let svg = plot.to_svg();
    assert!(svg.contains("role=\"img\"") && svg.contains("aria-label=\"MNIST"));
    for (class, least) in [
        ("x-tick", 4),
        ("y-tick", 4),
        ("legend", 5),
        ("end-label", 5),
    ] {
        let found = svg.matches(&format!("class=\"{class}\"")).count();
        assert!(found >= least, "{found} of {class}");
    }
    assert!(
        svg.contains("class=\"outside\""),
        "the start is above the range"
    );
    assert!(!svg.contains("var("), "colours of a file are fixed");
}

#[test]
fn json_has_the_numbers_and_not_the_pixels() {
    let json = hostile_page().to_json();
    assert_eq!(json["title"], HOSTILE);
    let blocks = &json["sections"][0]["blocks"];
    assert_eq!(blocks[0]["kind"], "plot");
    assert_eq!(blocks[0]["series"][0]["points"][1][1], 2.0);
    assert_eq!(blocks[0]["series"][0]["style"], "line");
    assert_eq!(blocks[1]["kind"], "table");
    assert!(blocks[2]["values"][1][1].is_null());
    assert_eq!(blocks[3]["tiles"][0]["picture"]["width"], 5);
    assert!(blocks[3]["tiles"][0]["picture"].get("pixels").is_none());
}

#[test]
fn png_files_have_the_same_pixels() {
    let grey = Picture {
        width: 3,
        height: 2,
        channels: 1,
        pixels: vec![0, 1, 2, 253, 254, 255],
    };
    for picture in [picture(), grey] {
        let file = picture.to_png().expect("sizes agree");
        let mut reader = png::Decoder::new(std::io::Cursor::new(file))
            .read_info()
            .unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!(
            (info.width as usize, info.height as usize),
            (picture.width, picture.height)
        );
        assert_eq!(pixels[..info.buffer_size()], picture.pixels);
    }
}

#[test]
fn an_exact_run_has_no_curves() {
    let report = sample::report(1, None, Task::Regression);
    let page = training_page(&Run {
        report: &report,
        data: "d.csv".into(),
        names: &[],
        pictures: None,
        machine: sample::machine(),
    });
    let ids: Vec<_> = page.sections.iter().map(|s| s.id.as_str()).collect();
    assert_eq!(ids, ["time"]);
    assert!(page.lead.contains("no test part"), "{}", page.lead);
}

/// Without test rows, others say what they can, under their own name.
#[test]
fn validation_and_left_out_rows_stand_in_for_test_rows() {
    let codes: Vec<u32> = (0..200).map(|i| i % 3).collect();
    let names: Vec<String> = (0..3).map(|k| format!("class {k}")).collect();
    let scores = sample::class_scores(&codes, 3, 10.0);
    let evaluation = Evaluation::new(&scores, &Truth::Classes(codes), &names).unwrap();
    let classes = sample::report(20, None, Task::Classification);
    let (truth, values) = sample::regression(300);
    let outputs = ["a".to_string(), "b".into()];
    let value_evaluation = Evaluation::new(&values, &truth, &outputs).unwrap();
    let regression = sample::report(20, None, Task::Regression);
    for (report, evaluation, ids) in [
        (&classes, &evaluation, &["confusion", "calibration"][..]),
        (&regression, &value_evaluation, &["predictions"]),
    ] {
        for (left_out, name) in [(false, "validation rows"), (true, "left-out training rows")] {
            let some = Some(evaluation.clone());
            let (validation, leave_one_out) = if left_out { (None, some) } else { (some, None) };
            let page = training_page(&Run {
                report: &Report {
                    validation,
                    leave_one_out,
                    ..report.clone()
                },
                data: "d.csv".into(),
                names: &names,
                pictures: None,
                machine: sample::machine(),
            });
            let lead = &page.lead;
            assert!(lead.starts_with("There was no test part."), "{lead}");
            assert!(lead.contains(name) && lead.contains("95 %"), "{lead}");
            for id in ids {
                let section = page.sections.iter().find(|s| s.id == *id).unwrap();
                let text = serde_json::to_string(section).unwrap();
                assert!(text.contains(name) && !text.contains("test rows"), "{text}");
            }
        }
    }
}

/// Sets and intervals promised by some rows are measured on others, never on the same.
#[test]
fn promises_are_measured_on_rows_they_were_not_made_from() {
    let codes: Vec<u32> = (0..400).map(|i| i % 3).collect();
    let classes = Truth::Classes(codes.clone());
    let (values, predicted) = sample::regression(400);
    let names = ["a".to_string(), "b".into(), "c".into()];
    for (id, truth, scores, task, columns) in [
        (
            "sets",
            &classes,
            sample::class_scores(&codes, 3, 10.0),
            Task::Classification,
            4,
        ),
        ("intervals", &values, predicted, Task::Regression, 3),
    ] {
        let evaluation = Evaluation::new(&scores, truth, &names[..scores.cols()]).unwrap();
        let section = |from: Option<HeldOut>, test: bool| {
            let conformal = from.and_then(|from| sample::conformal(from, &scores, truth));
            let report = Report {
                validation: None,
                leave_one_out: Some(evaluation.clone()),
                conformal,
                ..sample::report(20, test.then(|| evaluation.clone()), task)
            };
            let page = training_page(&Run {
                report: &report,
                data: "d.csv".into(),
                names: &names,
                pictures: None,
                machine: sample::machine(),
            });
            page.sections.into_iter().find(|s| s.id == id)
        };
        assert!(section(None, true).is_none());
        let measured = section(Some(HeldOut::LeaveOneOut), true).unwrap();
        let [Block::Plot(kept), Block::Plot(_), Block::Table(table)] = &measured.blocks[..] else {
            panic!("{measured:?}");
        };
        // Of the rows that made it, a promise holds at least its share, and little more.
        for (promise, held) in &kept.series[0].points {
            assert!(
                *held >= *promise && *held < promise + 0.02,
                "{promise}: {held}"
            );
        }
        assert_eq!(table.header.len(), columns + 2);
        assert!(table.header.iter().any(|cell| cell == "held"));
        let own = section(Some(HeldOut::LeaveOneOut), false).unwrap();
        let [Block::Plot(_), Block::Table(table)] = &own.blocks[..] else {
            panic!("{own:?}");
        };
        assert_eq!(table.header.len(), columns);
        assert!(
            own.text[0].contains("they cannot say whether"),
            "{:?}",
            own.text
        );
    }
}

#[test]
fn leave_one_out_errors_that_are_estimates_say_so() {
    let codes: Vec<u32> = (0..200).map(|i| i % 3).collect();
    let names: Vec<String> = (0..3).map(|k| format!("class {k}")).collect();
    let scores = sample::class_scores(&codes, 3, 10.0);
    let mut left_out = Evaluation::new(&scores, &Truth::Classes(codes), &names).unwrap();
    left_out.estimate = Some(Estimate {
        standard_error: 0.125,
        probes: 32,
        solved_rows: 31,
    });
    let mut report = sample::report(20, None, Task::Classification);
    let page = |report: &Report| {
        training_page(&Run {
            report,
            data: "d.csv".into(),
            names: &names,
            pictures: None,
            machine: sample::machine(),
        })
    };
    report.leave_one_out = Some(left_out);
    let estimated = page(&report);
    assert!(estimated.lead.contains("± 0.1"), "{}", estimated.lead);
    let html = estimated.to_html();
    assert!(html.contains("an estimate: 32 probes of all rows, and 31 rows"));
    report.leave_one_out = None;
    report.leave_one_out_missing = Some("it was interrupted".into());
    assert!(page(&report).to_html().contains("none: it was interrupted"));
}

#[test]
fn a_regression_run_shows_its_values() {
    let (truth, scores) = sample::regression(12_000);
    let names = [String::new(), "b".into()];
    let page = sample::page("d.csv", 30, &scores, &truth, &names, None);
    assert!(
        page.lead.contains("RMSE") && page.lead.contains("R²"),
        "{}",
        page.lead
    );
    let section = page
        .sections
        .iter()
        .find(|s| s.id == "predictions")
        .unwrap();
    assert_eq!(section.blocks.len(), 4);
    let Block::Plot(plot) = &section.blocks[0] else {
        panic!("a plot");
    };
    assert_eq!(plot.series[0].points.len(), 4_000);
    assert!(plot.title.starts_with("output 1"));
}

#[test]
fn scores_that_are_not_numbers_do_no_harm() {
    let scores = Matrix::from_rows(&[[f64::NAN, 1.0], [0.2, 0.1]]);
    let truth = Truth::Classes(vec![0, 1]);
    let names = ["a".to_string(), "b".into()];
    let page = sample::page("d.csv", 5, &scores, &truth, &names, None);
    assert!(page.sections.iter().all(|s| s.id != "calibration"));
    assert!(!page.to_html().contains("NaN"));
}
