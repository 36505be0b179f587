//! Storage layers and what of them is granted.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::api::{Constraint, Layer, LayerId, NodeId};

#[derive(Debug)]
struct Account {
    layer: Layer,
    bandwidth: u64,
    size: u64,
}

/// The layers in rank order: highest bandwidth first, of equals the smaller first.
#[derive(Debug)]
pub(crate) struct Layers {
    accounts: Vec<Account>,
    ranked: Vec<LayerId>,
}

fn fits(limit: Option<u64>, used: u64, asked: u64) -> bool {
    limit.is_none_or(|limit| used.checked_add(asked).is_some_and(|sum| sum <= limit))
}

impl Layers {
    pub(crate) fn new(layers: Vec<Layer>) -> Layers {
        let mut ranked: Vec<LayerId> = (0..layers.len() as u32).map(LayerId).collect();
        ranked.sort_by_key(|id| {
            let layer = &layers[id.0 as usize];
            let bandwidth = layer.bandwidth.unwrap_or(u64::MAX);
            (core::cmp::Reverse(bandwidth), layer.capacity.unwrap_or(u64::MAX), *id)
        });
        let account = |layer| Account { layer, bandwidth: 0, size: 0 };
        Layers { accounts: layers.into_iter().map(account).collect(), ranked }
    }

    /// Highest first.
    pub(crate) fn ranked(&self) -> &[LayerId] {
        &self.ranked
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    pub(crate) fn reaches(&self, id: LayerId, node: NodeId) -> bool {
        self.accounts[id.0 as usize].layer.node.is_none_or(|own| own == node)
    }

    /// Whether the constraint fits beside what is granted now.
    pub(crate) fn fits(&self, id: LayerId, asked: Constraint) -> bool {
        let Account { layer, bandwidth, size } = &self.accounts[id.0 as usize];
        fits(layer.bandwidth, *bandwidth, asked.bandwidth)
            && fits(layer.capacity, *size, asked.size)
    }

    /// What is left of a layer.
    pub(crate) fn spare(&self, id: LayerId) -> Constraint {
        let Account { layer, bandwidth, size } = &self.accounts[id.0 as usize];
        let left = |limit: Option<u64>, used| limit.map_or(u64::MAX, |limit| limit - used);
        Constraint {
            bandwidth: left(layer.bandwidth, *bandwidth),
            size: left(layer.capacity, *size),
        }
    }

    pub(crate) fn grant(&mut self, id: LayerId, asked: Constraint) {
        assert!(self.fits(id, asked), "a grant never exceeds its layer");
        let account = &mut self.accounts[id.0 as usize];
        account.bandwidth += asked.bandwidth;
        account.size += asked.size;
    }

    pub(crate) fn give_back(&mut self, id: LayerId, granted: Constraint) {
        let account = &mut self.accounts[id.0 as usize];
        account.bandwidth -= granted.bandwidth;
        account.size -= granted.size;
    }

    /// What is granted of a layer now.
    pub(crate) fn granted(&self, id: LayerId) -> Option<Constraint> {
        let account = self.accounts.get(id.0 as usize)?;
        Some(Constraint { bandwidth: account.bandwidth, size: account.size })
    }

    /// `Ok` if some layer, idle, satisfies the constraint; else the nearest and why not.
    pub(crate) fn could_ever(
        &self,
        only: Option<LayerId>,
        asked: Constraint,
    ) -> Result<(), String> {
        let mut nearest = None;
        for id in &self.ranked {
            if only.is_some_and(|only| only != *id) {
                continue;
            }
            let layer = &self.accounts[id.0 as usize].layer;
            let wide = fits(layer.bandwidth, 0, asked.bandwidth);
            if wide && fits(layer.capacity, 0, asked.size) {
                return Ok(());
            }
            let (what, most) = match wide {
                false => ("bandwidth, bytes/s", layer.bandwidth),
                true => ("capacity, bytes", layer.capacity),
            };
            let most = most.unwrap_or(u64::MAX);
            nearest.get_or_insert_with(|| format!("{} ({what}: {most})", layer.name));
        }
        Err(nearest.unwrap_or_else(|| "there is no layer".to_string()))
    }
}
