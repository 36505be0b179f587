//! The command line of the experiments.

use std::path::PathBuf;

pub(super) const USAGE: &str = "usage: cargo xtask experiment [APPLICATION...] [options]
  APPLICATION     hmmer, variants, kmeans (default: all)
  --seed N        what noise and run times are drawn from (default 1)
  --storage FILE  disks as a storage description has them, instead of the published ones: their
                  bandwidth, and their limit if it has one (the folders need not be there)
  --layer NAME    which of several layers in FILE
  --probe FILE    disks as `alongside probe --json` measured them: the curve of writes, which goes
                  on beyond the most writers that were measured as it came down from its peak
  --out DIR       write experiment.json there";

/// Where disks are described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The file.
    pub file: PathBuf,
    /// Whether it is what a probe printed, and not a storage description.
    pub probed: bool,
    /// Which of its layers; none: it has one.
    pub layer: Option<String>,
}

#[derive(Debug)]
pub(super) struct Options {
    pub seed: u64,
    pub out: Option<PathBuf>,
    pub only: Vec<String>,
    pub given: Option<Given>,
}

pub(super) fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options { seed: 1, out: None, only: Vec::new(), given: None };
    let mut layer = None;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--seed" => {
                let text = value()?;
                options.seed = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
            }
            "--out" => options.out = Some(PathBuf::from(value()?)),
            "--layer" => layer = Some(value()?.clone()),
            "--storage" | "--probe" => {
                let given = Given { file: value()?.into(), probed: arg == "--probe", layer: None };
                if options.given.replace(given).is_some() {
                    return Err("one --storage or one --probe says what the disks are".to_string());
                }
            }
            "hmmer" | "variants" | "kmeans" => options.only.push(arg.clone()),
            other => return Err(format!("unknown argument {other:?}")),
        }
    }
    match (&mut options.given, layer) {
        (Some(given), layer) => given.layer = layer,
        (None, Some(_)) => return Err("--layer goes with --storage or --probe".to_string()),
        (None, None) => {}
    }
    Ok(options)
}
