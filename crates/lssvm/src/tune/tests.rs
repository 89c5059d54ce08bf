//! The search finds what it should, and ends when it should.

use super::*;
use crate::data::Labels;
use crate::kernel::KernelName;
use crate::linalg::Matrix;
use crate::solve::Silent;

/// A ring around a disc: a linear kernel cannot, a Gaussian can.
fn rings(n: usize) -> Dataset<f64> {
    let angle = |i: usize| i as f64 * 2.399;
    let radius =
        |i: usize| if i.is_multiple_of(2) { 1.0 } else { 2.0 } + 0.3 * (i as f64 * 1.7).sin();
    let x = Matrix::from_fn(n, 2, |i, j| match j {
        0 => radius(i) * angle(i).cos(),
        _ => radius(i) * angle(i).sin(),
    });
    let mut data = Dataset::new("rings".as_ref(), x);
    data.labels = Some(Labels::from_text((0..n).map(|i| ["in", "out"][i % 2])));
    data
}

/// Few enough for a test.
fn small_space() -> Space {
    Space {
        preprocess: vec!["standardize".parse().unwrap()],
        kernels: vec![KernelName::Linear, KernelName::Rbf],
        gamma: vec![0.3, 1.0],
        degree: vec![],
        c: vec![0.1, 1.0, 10.0, 100.0],
    }
}

#[test]
fn a_kernel_that_can_is_found() {
    let space = Space {
        gamma: vec![0.1, 0.3, 1.0, 3.0, 10.0],
        ..small_space()
    };
    let found = tune(
        rings(1_500),
        &space,
        &Config::default(),
        TuneLimits::default(),
        &mut Silent,
    );
    let found = found.unwrap();
    assert_eq!(found.rungs, [500, 1_500]);
    assert!(!found.cut_short);
    assert!(found.best.error < 5.0, "{:?}", found.best);
    assert_eq!(found.best.rows, 1_500);
    let linear = found
        .trials
        .iter()
        .find(|trial| trial.config.kernel == Some(KernelName::Linear));
    assert!(linear.unwrap().error > 20.0);
    // On more rows all that cannot be told from the best, and none that is far off.
    let on = |rows| found.trials.iter().filter(move |t| t.rows == rows);
    assert_eq!(on(500).count(), found.candidates);
    let best = on(500).min_by(|a, b| a.error.total_cmp(&b.error)).unwrap();
    let most = best.error + best.standard_error;
    for alike in on(500).filter(|t| t.error <= most) {
        assert!(on(1_500).any(|t| t.candidate == alike.candidate));
    }
    assert!(on(1_500).all(|t| t.config.kernel != Some(KernelName::Linear)));
    // On the last rows it was judged exactly, and there are no others.
    assert!(found.best.exact && found.confirmed.is_none());
    let again = found
        .trials
        .iter()
        .find(|t| t.candidate == found.best.candidate && t.rows == 1_500);
    assert_eq!(again.unwrap().error, found.best.error);
}

#[test]
fn rungs_are_thirds_of_the_most_rows() {
    assert_eq!(rungs_up_to(7), [7]);
    assert_eq!(rungs_up_to(1_499), [1_499]);
    assert_eq!(rungs_up_to(1_500), [500, 1_500]);
    assert_eq!(rungs_up_to(5_000), [555, 1_666, 5_000]);
    assert_eq!(rungs_up_to(15_000), [555, 1_666, 5_000, 15_000]);
}

#[test]
fn the_best_alone_are_judged_on_the_most_rows() {
    let rows = 4_500;
    let with = |one_standard_error| {
        let limits = TuneLimits {
            one_standard_error,
            ..TuneLimits::default()
        };
        let (space, base) = (small_space(), Config::default());
        let found = tune(rings(rows), &space, &base, limits, &mut Silent).unwrap();
        assert_eq!(found.rungs, [500, 1_500, rows]);
        found
    };
    let found = with(false);
    let last: Vec<&Trial> = found.trials.iter().filter(|t| t.rows == rows).collect();
    assert_eq!(last.len(), 4);
    assert!(last.iter().all(|t| t.exact && t.error >= found.best.error));
    let came_through = |trial: &Trial| {
        let mut all = found.trials.iter();
        all.any(|t| t.rows == 1_500 && t.candidate == trial.candidate)
    };
    assert!(last.into_iter().all(came_through));
    // A simpler one of its family, whichever were judged.
    let simple = with(true);
    let error = |t: &Trial| (t.error, t.error + t.standard_error);
    let ((least, most), (simpler, _)) = (error(&found.best), error(&simple.best));
    assert!(simple.best.config.c <= found.best.config.c);
    assert!((least..=most).contains(&simpler));
    let c = small_space().c.len();
    let own = |t: &&Trial| t.rows == rows && t.config.gamma == simple.best.config.gamma;
    assert_eq!(simple.trials.iter().filter(own).count(), c);
}

#[test]
fn one_standard_error_takes_a_smaller_c() {
    let space = small_space();
    let with = |one_standard_error| {
        let limits = TuneLimits {
            one_standard_error,
            ..TuneLimits::default()
        };
        let found = tune(rings(300), &space, &Config::default(), limits, &mut Silent);
        found.unwrap().best
    };
    let (best, simple) = (with(false), with(true));
    assert!(simple.config.c <= best.config.c);
    assert!(simple.error <= best.error + best.standard_error);
}

#[test]
fn time_and_wishes_end_a_search() {
    struct Enough(usize);
    impl TuneWatcher for Enough {
        fn tried(&mut self, _: &Trial, _: &Trial, _: usize, _: usize) -> Flow {
            self.0 -= 1;
            match self.0 {
                0 => Flow::Stop,
                _ => Flow::Continue,
            }
        }
    }
    let (space, base) = (Space::for_rows(None), Config::default());
    let limits = TuneLimits::default();
    let found = tune(rings(200), &space, &base, limits, &mut Enough(7)).unwrap();
    assert!(found.cut_short);
    assert_eq!(found.trials.len(), 7);
    let none = TuneLimits {
        seconds: Some(0.0),
        ..limits
    };
    let error = tune(rings(200), &space, &base, none, &mut Silent).unwrap_err();
    assert!(error.to_string().contains("more time"), "{error}");
}

#[test]
fn every_sample_has_every_class() {
    let mut data = rings(1_200);
    let class = |i: usize| match i {
        7 | 1_100 => "rare",
        i => ["in", "out"][i % 2],
    };
    data.labels = Some(Labels::from_text((0..1_200).map(class)));
    let targets = data.labels.as_ref().unwrap().resolve(Task::Auto).unwrap();
    let mut order = order_of(&targets, 1_200, 1);
    assert!(order[..6].contains(&7) && order[..6].contains(&1_100));
    order.sort_unstable();
    assert!(order.into_iter().eq(0..1_200));
    // A weight by name fails where a sample does not know the class.
    let base = Config {
        class_weight: Some("rare=5".parse().unwrap()),
        ..Config::default()
    };
    let found = tune(
        data,
        &small_space(),
        &base,
        TuneLimits::default(),
        &mut Silent,
    );
    assert!(found.unwrap().best.error < 10.0);
}

#[test]
fn regression_is_judged_by_its_rmse() {
    let x = Matrix::from_fn(200, 2, |i, j| ((i * 7 + j * 3) as f64 * 0.37).sin() * 2.0);
    let y = Matrix::from_fn(200, 1, |i, _| (x.get(i, 0) * 2.0).sin() + x.get(i, 1));
    let mut data = Dataset::new("waves".as_ref(), x);
    data.labels = Some(Labels::from_values(y).unwrap());
    let limits = TuneLimits::default();
    let space = Space::for_rows(None);
    let found = tune(data, &space, &Config::default(), limits, &mut Silent).unwrap();
    assert!(found.best.error < 0.1, "{:?}", found.best);
}

#[test]
fn the_choice_is_confirmed_on_all_rows() {
    let limits = TuneLimits {
        rows: Some(1_000),
        exhaustive: true,
        confirm: true,
        ..TuneLimits::default()
    };
    let (space, base) = (small_space(), Config::default());
    let found = tune(rings(1_500), &space, &base, limits, &mut Silent).unwrap();
    assert_eq!(found.rungs, [1_000]);
    let confirmed = found.confirmed.unwrap();
    assert_eq!((confirmed.rows, confirmed.held_out), (1_350, 150));
    assert!(
        (confirmed.error - found.best.error).abs() < 5.0,
        "{confirmed:?}"
    );
}

#[test]
fn a_kernel_that_is_not_positive_is_tried_too() {
    let space = Space {
        kernels: vec![KernelName::Sigmoid, KernelName::Rbf],
        c: vec![1.0, 10.0],
        ..small_space()
    };
    let limits = TuneLimits::default();
    let found = tune(
        rings(1_200),
        &space,
        &Config::default(),
        limits,
        &mut Silent,
    )
    .unwrap();
    assert_eq!(found.best.config.kernel, Some(KernelName::Rbf));
    let sigmoid = |t: &&Trial| t.config.kernel == Some(KernelName::Sigmoid);
    assert!(found.trials.iter().filter(sigmoid).all(|t| t.exact));
}
