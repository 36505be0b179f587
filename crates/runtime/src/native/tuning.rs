//! What programs ask of layers, and are told of what tuning found.

use std::ffi::CStr;

use sched::Tuning;

use super::io_task::Wants;
use super::layers::Layer;
use super::runtime::Runtime;
use super::say::say;
use super::worker;
use crate::learned::write_learned;
use crate::tuning::{parse_ask, Ask, TunedStatistics};

impl Runtime {
    /// What an I/O task asks for: a bandwidth in the words of `parse_ask` (`None`: nothing), bytes,
    /// and a layer by name (`None`: any). `Err` says what is wrong with it.
    pub fn wants(
        &self,
        bandwidth: Option<&CStr>,
        size: u64,
        layer: Option<&CStr>,
    ) -> Result<Wants, String> {
        let bandwidth = bandwidth.map(|text| {
            let text = text.to_str().map_err(|_| "bandwidth is not UTF-8".to_string())?;
            parse_ask(text).map_err(|why| format!("bandwidth: {why}"))
        });
        let layer = layer.map(|name| self.0.layers.named(name));
        let (bandwidth, layer) = (bandwidth.transpose()?, layer.transpose()?);
        if matches!(bandwidth, Some(Ask::Bandwidth(_) | Ask::Found(Tuning::Auto { .. }))) {
            self.measure();
        }
        Ok(Wants { bandwidth, size, layer, ..Wants::default() })
    }

    /// Measures the layer that nobody described, if there is one: once, in five seconds at most.
    fn measure(&self) {
        let Some(folder) = self.0.unmeasured.lock().take() else { return };
        match crate::probe::quick::bandwidth(&folder) {
            Ok(bandwidth) => self.0.with_core(|core| core.set_bandwidth(bandwidth)),
            Err(why) => say(&why),
        }
    }

    /// Does something with the layer of the I/O task that calls. `None`: the caller is in none.
    pub fn with_layer<T>(look: impl FnOnce(&Layer) -> T) -> Option<T> {
        let (local, task) = worker::here()?;
        let layer = task.get().io()?.layer()?;
        Some(look(local.shared().layers.get(layer)))
    }

    /// What tuning does, for each function and layer that it has met.
    pub fn tuned(&self) -> Vec<TunedStatistics> {
        self.0.with_core(|core| core.tuned())
    }

    /// All tasks are over: what was learned is kept, and what fits badly is told. The program's own
    /// results matter more, so that nothing here fails.
    pub(super) fn keep_learned(&self) {
        for TunedStatistics { function, tuned } in self.tuned() {
            if tuned.varies {
                say(&format!(
                    "the tasks \"{function}\" on the layer \"{}\" move very different amounts of \
                     data, so that a mean says little: bandwidth \"adaptive\" fits them better",
                    tuned.layer
                ));
            }
        }
        let Some(file) = &self.0.learned else { return };
        let learned = self.0.with_core(|core| core.learned());
        if let Err(why) = write_learned(file, &learned) {
            say(&why);
        }
    }
}
