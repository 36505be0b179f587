//! Storage layers: what of them is granted, and what files take up of them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::api::{Constraint, Layer, LayerId, NodeId};

#[derive(Debug)]
struct Account {
    layer: Layer,
    /// What the session can use of it now; the capacity of `layer` is what was described.
    usable: Option<u64>,
    bandwidth: u64,
    size: u64,
    tasks: u32,
    /// Bytes of files that are there.
    stored: u64,
    /// Bytes of files that are on their way here.
    expected: u64,
    down: bool,
}

/// A set of layers. Those from the 128th on are in it together or not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mask(u128);

impl Mask {
    fn bit(id: LayerId) -> u128 {
        1 << id.0.min(u128::BITS - 1)
    }

    pub(crate) fn insert(&mut self, id: LayerId) {
        self.0 |= Mask::bit(id);
    }

    pub(crate) fn contains(self, id: LayerId) -> bool {
        self.0 & Mask::bit(id) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The layers in rank order: highest bandwidth first, of equals the smaller first.
#[derive(Debug)]
pub(crate) struct Layers {
    accounts: Vec<Account>,
    ranked: Vec<LayerId>,
    /// By layer: equal where bandwidth and capacity are. `None` if no two are equal.
    ranks: Option<Vec<u32>>,
    /// By layer: 0 is the highest; equal where bandwidth and capacity are.
    levels: Vec<u32>,
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
        let levels = levels(&layers, &ranked);
        let all = levels.iter().max().map_or(0, |last| *last as usize + 1);
        let ranks = (all < layers.len()).then(|| levels.clone());
        let account = |layer: Layer| {
            let usable = layer.capacity;
            let (bandwidth, size, tasks, stored, expected) = (0, 0, 0, 0, 0);
            Account { layer, usable, bandwidth, size, tasks, stored, expected, down: false }
        };
        Layers { accounts: layers.into_iter().map(account).collect(), ranked, ranks, levels }
    }

    fn account(&mut self, id: LayerId) -> &mut Account {
        &mut self.accounts[id.0 as usize]
    }

    /// 0 is the highest; layers of equal bandwidth and capacity are at one level.
    pub(crate) fn level(&self, id: LayerId) -> u32 {
        self.levels[id.0 as usize]
    }

    pub(crate) fn is_down(&self, id: LayerId) -> bool {
        self.accounts[id.0 as usize].down
    }

    pub(crate) fn set_down(&mut self, id: LayerId, down: bool) {
        self.account(id).down = down;
    }

    pub(crate) fn set_usable(&mut self, id: LayerId, bytes: Option<u64>) {
        self.account(id).usable = bytes;
    }

    /// Bytes of files that are there.
    pub(crate) fn stored(&self, id: LayerId) -> Option<u64> {
        self.accounts.get(id.0 as usize).map(|account| account.stored)
    }

    /// Bytes of files that are on their way there.
    pub(crate) fn expected(&self, id: LayerId) -> u64 {
        self.accounts[id.0 as usize].expected
    }

    /// A file takes up so many bytes.
    pub(crate) fn store(&mut self, id: LayerId, bytes: u64) {
        let account = self.account(id);
        account.stored = account.stored.saturating_add(bytes);
    }

    /// A file takes up so many bytes no more.
    pub(crate) fn unstore(&mut self, id: LayerId, bytes: u64) {
        let account = self.account(id);
        account.stored = account.stored.saturating_sub(bytes);
    }

    /// A file of so many bytes begins to move there.
    pub(crate) fn expect(&mut self, id: LayerId, bytes: u64) {
        let account = self.account(id);
        account.expected = account.expected.saturating_add(bytes);
    }

    /// Likewise, and does so no more.
    pub(crate) fn expect_no_more(&mut self, id: LayerId, bytes: u64) {
        let account = self.account(id);
        account.expected = account.expected.saturating_sub(bytes);
    }

    /// What there is for tasks if none of them ran: all that files leave.
    pub(crate) fn idle(&self, id: LayerId) -> Constraint {
        let Account { layer, usable, stored, expected, .. } = &self.accounts[id.0 as usize];
        let taken = stored.saturating_add(*expected);
        Constraint {
            bandwidth: layer.bandwidth.unwrap_or(u64::MAX),
            size: usable.map_or(u64::MAX, |most| most.saturating_sub(taken)),
        }
    }

    /// Whether the layer, if it is not down, could take the constraint if nothing else were there:
    /// by what was described, or by what can be used now.
    pub(crate) fn takes(&self, id: LayerId, asked: Constraint) -> bool {
        let Account { layer, usable, down, .. } = &self.accounts[id.0 as usize];
        let size = fits(layer.capacity, 0, asked.size) || fits(*usable, 0, asked.size);
        !down && size && fits(layer.bandwidth, 0, asked.bandwidth)
    }

    /// Highest first.
    pub(crate) fn ranked(&self) -> &[LayerId] {
        &self.ranked
    }

    /// In the order of their identifiers.
    pub(crate) fn ids(&self) -> impl Iterator<Item = LayerId> {
        (0..self.accounts.len() as u32).map(LayerId)
    }

    pub(crate) fn layer(&self, id: LayerId) -> &Layer {
        &self.accounts[id.0 as usize].layer
    }

    /// The bandwidth of a layer that had no limit.
    pub(crate) fn set_bandwidth(&mut self, id: LayerId, bandwidth: u64) {
        let account = &mut self.accounts[id.0 as usize];
        account.layer.bandwidth = Some(bandwidth.max(account.bandwidth));
    }

    /// How many tasks hold a grant on a layer.
    pub(crate) fn tasks(&self, id: LayerId) -> u32 {
        self.accounts[id.0 as usize].tasks
    }

    /// What orders layers that are equally high, if there are such: the fewest tasks first.
    pub(crate) fn order(&self) -> Option<impl Fn(Option<LayerId>) -> (u32, u32, u32) + '_> {
        let ranks = self.ranks.as_ref()?;
        Some(|layer: Option<LayerId>| {
            layer.map_or((0, 0, 0), |id| (ranks[id.0 as usize], self.tasks(id), id.0))
        })
    }

    /// By layer: the same number for layers of one name and bandwidth, which are copies of one
    /// another on different nodes.
    pub(crate) fn kinds(&self) -> Vec<u32> {
        let name = |at: usize| (&self.accounts[at].layer.name, self.accounts[at].layer.bandwidth);
        let first = |at: usize| (0..=at).find(|other| name(*other) == name(at)).unwrap_or(at);
        (0..self.accounts.len()).map(|at| first(at) as u32).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// Whether a node, by position, reaches a layer.
    pub(crate) fn reaches_from(&self, id: LayerId, node: usize) -> bool {
        self.reaches(id, NodeId(node as u32))
    }

    pub(crate) fn reaches(&self, id: LayerId, node: NodeId) -> bool {
        self.accounts[id.0 as usize].layer.node.is_none_or(|own| own == node)
    }

    /// Whether the constraint fits beside what is granted now.
    pub(crate) fn fits(&self, id: LayerId, asked: Constraint) -> bool {
        let spare = self.spare(id);
        asked.bandwidth <= spare.bandwidth && asked.size <= spare.size
    }

    /// What is left of a layer.
    pub(crate) fn spare(&self, id: LayerId) -> Constraint {
        let Account { layer, bandwidth, size, .. } = &self.accounts[id.0 as usize];
        let idle = self.idle(id);
        let bandwidth = layer.bandwidth.map_or(u64::MAX, |limit| limit - bandwidth);
        // Even without a limit, sums stay numbers.
        let size = idle.size.saturating_sub(*size);
        Constraint { bandwidth, size }
    }

    pub(crate) fn grant(&mut self, id: LayerId, asked: Constraint) {
        assert!(self.fits(id, asked), "a grant never exceeds its layer");
        let account = &mut self.accounts[id.0 as usize];
        account.tasks += 1;
        account.bandwidth += asked.bandwidth;
        account.size += asked.size;
    }

    pub(crate) fn give_back(&mut self, id: LayerId, granted: Constraint) {
        let account = &mut self.accounts[id.0 as usize];
        account.tasks -= 1;
        account.bandwidth -= granted.bandwidth;
        account.size -= granted.size;
    }

    /// A task holds so much less bandwidth than it did.
    pub(crate) fn narrow(&mut self, id: LayerId, bandwidth: u64) {
        self.accounts[id.0 as usize].bandwidth -= bandwidth;
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
            let usable = self.accounts[id.0 as usize].usable;
            if wide && (fits(layer.capacity, 0, asked.size) || fits(usable, 0, asked.size)) {
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

/// By layer, how many different layers are above it.
fn levels(layers: &[Layer], ranked: &[LayerId]) -> Vec<u32> {
    let level = |id: LayerId| (layers[id.0 as usize].bandwidth, layers[id.0 as usize].capacity);
    let mut levels = alloc::vec![0; layers.len()];
    let mut rank = 0;
    for pair in ranked.windows(2) {
        rank += u32::from(level(pair[0]) != level(pair[1]));
        levels[pair[1].0 as usize] = rank;
    }
    levels
}
