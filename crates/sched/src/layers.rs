//! Storage layers: what of them is granted, and what files take up of them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::api::{Constraint, Layer, LayerId, NodeId, Way};

#[derive(Debug)]
struct Account {
    layer: Layer,
    /// What the session can use of it now; the capacity of `layer` is what was described.
    usable: Option<u64>,
    /// Granted, by [`Way`].
    bandwidth: [u64; 3],
    size: u64,
    tasks: u32,
    /// Bytes of files that are there.
    stored: u64,
    /// Bytes of files that are on their way here.
    expected: u64,
    down: bool,
    /// The high watermark was passed, and the low one not reached since.
    drains: bool,
}

impl Account {
    /// What is granted of the bandwidth that reads, writes or (`Both`) all share.
    fn taken(&self, way: Way) -> u64 {
        let ways = Way::ALL.into_iter().zip(self.bandwidth);
        ways.filter(|(other, _)| way.meets(*other)).map(|(_, granted)| granted).sum()
    }

    /// Whether files, with so many bytes more, take up more than this part of what can be used.
    fn is_above(&self, permille: u32, more: u64) -> bool {
        let taken = u128::from(self.stored) + u128::from(self.expected) + u128::from(more);
        let usable = self.usable.map(|usable| u128::from(usable) * u128::from(permille));
        usable.is_some_and(|usable| taken * 1000 > usable)
    }

    /// What is left of the bandwidth for those that go that way.
    fn spare(&self, way: Way) -> u64 {
        let Layer { bandwidth, read_bandwidth, write_bandwidth, .. } = &self.layer;
        let left = |limit: &Option<u64>, of: Way| {
            let limit = limit.filter(|_| way.meets(of));
            limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.taken(of)))
        };
        left(bandwidth, Way::Both)
            .min(left(read_bandwidth, Way::Read))
            .min(left(write_bandwidth, Way::Write))
    }
}

/// What there is of a layer for tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spare {
    /// Bytes a second, by [`Way`].
    bandwidth: [u64; 3],
    /// Bytes.
    pub(crate) size: u64,
}

impl Spare {
    /// So much, whichever way.
    pub(crate) fn new(bandwidth: u64, size: u64) -> Spare {
        Spare { bandwidth: [bandwidth; 3], size }
    }

    /// Bytes a second for those that go that way.
    pub(crate) fn bandwidth(&self, way: Way) -> u64 {
        self.bandwidth[way as usize]
    }

    /// Whether it is enough.
    pub(crate) fn fits(&self, asked: Constraint) -> bool {
        asked.bandwidth <= self.bandwidth(asked.way) && asked.size <= self.size
    }
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

/// What a task asks too much of, by [`Way`].
const BANDWIDTHS: [&str; 3] =
    ["bandwidth to read, bytes/s", "bandwidth to write, bytes/s", "bandwidth, bytes/s"];

fn fits(limit: Option<u64>, used: u64, asked: u64) -> bool {
    limit.is_none_or(|limit| used.checked_add(asked).is_some_and(|sum| sum <= limit))
}

impl Layers {
    pub(crate) fn new(layers: Vec<Layer>) -> Layers {
        let mut ranked: Vec<LayerId> = (0..layers.len() as u32).map(LayerId).collect();
        ranked.sort_by_key(|id| {
            let layer = &layers[id.0 as usize];
            let bandwidth = layer.limit(Way::Both).unwrap_or(u64::MAX);
            (core::cmp::Reverse(bandwidth), layer.capacity.unwrap_or(u64::MAX), *id)
        });
        let levels = levels(&layers, &ranked);
        let all = levels.iter().max().map_or(0, |last| *last as usize + 1);
        let ranks = (all < layers.len()).then(|| levels.clone());
        let account = |layer: Layer| {
            let usable = layer.capacity;
            let (bandwidth, size, tasks, stored, expected) = ([0; 3], 0, 0, 0, 0);
            Account {
                layer,
                usable,
                bandwidth,
                size,
                tasks,
                stored,
                expected,
                down: false,
                drains: false,
            }
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

    /// Files came or went: which layers are too full of them.
    pub(crate) fn review_watermarks(&mut self) {
        for account in &mut self.accounts {
            let Some(marks) = account.layer.watermarks else { continue };
            let mark = if account.drains { marks.low } else { marks.high };
            account.drains = account.is_above(mark, 0);
        }
    }

    /// Whether files leave a layer although I/O goes on.
    pub(crate) fn drains(&self, id: LayerId) -> bool {
        self.accounts[id.0 as usize].drains
    }

    /// Whether a file of so many bytes would take a layer above its high watermark.
    pub(crate) fn would_drain(&self, id: LayerId, bytes: u64) -> bool {
        let account = &self.accounts[id.0 as usize];
        account.layer.watermarks.is_some_and(|marks| account.is_above(marks.high, bytes))
    }

    /// What there is for tasks if none of them ran: all that files leave.
    pub(crate) fn idle(&self, id: LayerId) -> Spare {
        let Account { layer, usable, stored, expected, .. } = &self.accounts[id.0 as usize];
        let taken = stored.saturating_add(*expected);
        Spare {
            bandwidth: Way::ALL.map(|way| layer.limit(way).unwrap_or(u64::MAX)),
            size: usable.map_or(u64::MAX, |most| most.saturating_sub(taken)),
        }
    }

    /// Whether the layer, if it is not down, could take the constraint if nothing else were there:
    /// by what was described, or by what can be used now.
    pub(crate) fn takes(&self, id: LayerId, asked: Constraint) -> bool {
        let Account { layer, usable, down, .. } = &self.accounts[id.0 as usize];
        let size = fits(layer.capacity, 0, asked.size) || fits(*usable, 0, asked.size);
        !down && size && fits(layer.limit(asked.way), 0, asked.bandwidth)
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
        account.layer.bandwidth = Some(bandwidth.max(account.taken(Way::Both)));
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
        let name = |at: usize| {
            let layer = &self.accounts[at].layer;
            (&layer.name, Way::ALL.map(|way| layer.limit(way)))
        };
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
        self.spare(id).fits(asked)
    }

    /// What is left of a layer.
    pub(crate) fn spare(&self, id: LayerId) -> Spare {
        let account = &self.accounts[id.0 as usize];
        // Even without a limit, sums stay numbers.
        let size = self.idle(id).size.saturating_sub(account.size);
        Spare { bandwidth: Way::ALL.map(|way| account.spare(way)), size }
    }

    pub(crate) fn grant(&mut self, id: LayerId, asked: Constraint) {
        assert!(self.fits(id, asked), "a grant never exceeds its layer");
        let account = &mut self.accounts[id.0 as usize];
        account.tasks += 1;
        account.bandwidth[asked.way as usize] += asked.bandwidth;
        account.size += asked.size;
    }

    pub(crate) fn give_back(&mut self, id: LayerId, granted: Constraint) {
        let account = &mut self.accounts[id.0 as usize];
        account.tasks -= 1;
        account.bandwidth[granted.way as usize] -= granted.bandwidth;
        account.size -= granted.size;
    }

    /// A task holds no room any more.
    pub(crate) fn give_room_back(&mut self, id: LayerId, bytes: u64) {
        self.accounts[id.0 as usize].size -= bytes;
    }

    /// A task holds so much less bandwidth than it did.
    pub(crate) fn narrow(&mut self, id: LayerId, way: Way, bandwidth: u64) {
        self.accounts[id.0 as usize].bandwidth[way as usize] -= bandwidth;
    }

    /// What is granted of a layer now, both ways together.
    pub(crate) fn granted(&self, id: LayerId) -> Option<Constraint> {
        let account = self.accounts.get(id.0 as usize)?;
        let (bandwidth, size) = (account.bandwidth.iter().sum(), account.size);
        Some(Constraint { bandwidth, size, way: Way::Both })
    }

    /// What is granted of a layer's bandwidth now, by [`Way`] of the tasks.
    pub(crate) fn granted_ways(&self, id: LayerId) -> [u64; 3] {
        self.accounts[id.0 as usize].bandwidth
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
            let limit = layer.limit(asked.way);
            let wide = fits(limit, 0, asked.bandwidth);
            let usable = self.accounts[id.0 as usize].usable;
            if wide && (fits(layer.capacity, 0, asked.size) || fits(usable, 0, asked.size)) {
                return Ok(());
            }
            let (what, most) = match wide {
                false => (BANDWIDTHS[asked.way as usize], limit),
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
    let level = |id: LayerId| {
        let layer = &layers[id.0 as usize];
        (layer.limit(Way::Both), layer.capacity)
    };
    let mut levels = alloc::vec![0; layers.len()];
    let mut rank = 0;
    for pair in ranked.windows(2) {
        rank += u32::from(level(pair[0]) != level(pair[1]));
        levels[pair[1].0 as usize] = rank;
    }
    levels
}
