//! Settings and figures of a run, one line each.

use lssvm::error::Bytes;
use lssvm::kernel::KernelName;
use lssvm::linalg::Precision;
use lssvm::solve::Method;
use lssvm::system::Format;
use lssvm::train::{Effective, Evaluation};

use super::Run;
use crate::page::Page;
use crate::plot::{grouped, short};

pub fn add(page: &mut Page, run: &Run) {
    let (report, config) = (run.report, &run.report.config);
    let [n, m, k] = report.shape.map(|size| grouped(size as f64, 0));
    // A model alone knows its settings, but not what the run that made it took.
    let timed = report.seconds > 0.0;
    page.fact("data", &run.data);
    page.fact("training rows (N)", n);
    page.fact("features (M)", m);
    page.fact("outputs (K)", k);
    if let Some(test) = &report.test {
        page.fact("test rows", grouped(test.rows as f64, 0));
    }
    if let Some(validation) = &report.validation {
        page.fact("validation rows", grouped(validation.rows as f64, 0));
    }
    page.fact("preprocessing", &config.preprocess);
    page.fact("kernel", kernel_in_words(config));
    page.fact("regularisation (c)", short(config.c));
    page.fact("method", config.method);
    if config.method.draws_blocks() || config.method == Method::GaussSeidel {
        page.fact("block size (J)", grouped(config.block_size as f64, 0));
    }
    if let Some(centers) = config.centers {
        let how = config.select.unwrap_or_default();
        let centers = grouped(centers as f64, 0);
        page.fact("centres (P)", format!("{centers}, {how} choice"));
    }
    if config.method.wants_kernel() && timed {
        let kept = match report.kernel_kept {
            Some(Format::Full) => "lower half kept in memory",
            Some(Format::Half) => "lower half kept in 16 bits",
            None => "computed as needed",
        };
        page.fact("kernel matrix", kept);
    }
    if config.method.is_iterative() {
        page.fact("iterations", iterations(run));
        if config.averages > 1 {
            page.fact("averaged runs", config.averages);
        }
        page.fact("seed", config.seed);
    }
    page.fact("threads", config.threads);
    let precision = match config.precision {
        Precision::F32 => "32 bits",
        Precision::F64 => "64 bits",
    };
    page.fact("precision", precision);
    if timed {
        page.fact("time", duration(report.seconds));
    }
    page.fact("stopped because", report.stopped.because());
    if let Some(residual) = report.residual_in_words() {
        page.fact("relative residual", residual);
    }
    if report.jitter > 0.0 {
        page.fact("added to a diagonal", format!("{:.1e}", report.jitter));
    }
    if let Some(left_out) = &report.leave_one_out {
        page.fact("leave-one-out error", error_in_words(left_out));
    }
    if let Some(why) = &report.leave_one_out_missing {
        page.fact("leave-one-out error", format!("none: {why}"));
    }
    let planned = Bytes(report.planned_memory_bytes);
    if timed {
        page.fact(
            "memory",
            match report.peak_memory_bytes {
                Some(peak) => format!("{} at its peak, {planned} planned", Bytes(peak)),
                None => format!("{planned} planned"),
            },
        );
    }
    page.fact("machine", run.machine.describe());
}

/// The share of wrong rows or the RMSE, and how it was found if that was by an estimate.
fn error_in_words(evaluation: &Evaluation) -> String {
    let percent = evaluation.error_percent.is_some();
    let value = |v: f64| match percent {
        true => format!("{v:.2} %"),
        false => short(v),
    };
    let error = value(evaluation.error().0);
    match &evaluation.estimate {
        Some(estimate) => {
            let off = value(estimate.standard_error);
            format!("{error} ± {off}, {estimate}")
        }
        None => error,
    }
}

fn iterations(run: &Run) -> String {
    let (made, best) = (run.report.iterations, run.report.best_iteration);
    match best == made {
        true => grouped(made as f64, 0),
        false => format!("{made}; kept {best}, the best on validation rows"),
    }
}

/// The kernel of a run: its name, and the parameters that it has.
pub fn kernel_in_words(config: &Effective) -> String {
    let (name, gamma) = (config.kernel, config.gamma);
    let (coef0, degree) = (short(config.coef0), config.degree);
    match name {
        KernelName::Linear => format!("{name}"),
        KernelName::Poly => format!("{name}, degree {degree}, gamma {gamma}, coef0 {coef0}"),
        KernelName::Rbf | KernelName::Laplacian => format!("{name}, gamma {gamma}"),
        KernelName::Sigmoid => format!("{name}, gamma {gamma}, coef0 {coef0}"),
    }
}

/// Seconds, with minutes or hours if there are many.
fn duration(seconds: f64) -> String {
    if seconds < 120.0 {
        return format!("{seconds:.1} s");
    }
    let minutes = seconds / 60.0;
    match minutes < 120.0 {
        true => format!("{seconds:.0} s ({minutes:.1} min)"),
        false => format!("{seconds:.0} s ({:.1} h)", minutes / 60.0),
    }
}
