//! Ready I/O tasks in the order of a policy, searched by what they ask for.
//!
//! A search tree that is kept balanced by weights (a treap; the weights are drawn from the
//! arrival, so the same input makes the same tree). Every subtree knows the least bandwidth and
//! the least size that is asked for in it, so a search for the first request that fits leaves
//! out what cannot fit: it costs the logarithm of the number of requests.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{Request, Room, Slot};
use crate::api::Constraint;

/// No subtree.
const NONE: u32 = u32::MAX;

/// What comes after the program's own priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Order {
    /// Arrival.
    #[default]
    Arrival,
    /// Bandwidth, descending, then arrival.
    Bandwidth,
}

/// The place of a request in an order.
pub(crate) type Rank = (Reverse<i32>, Reverse<u64>, u64);

impl Order {
    pub(crate) fn rank(self, request: &Request) -> Rank {
        let bandwidth = match self {
            Order::Arrival => 0,
            Order::Bandwidth => request.constraint.bandwidth,
        };
        (Reverse(request.priority), Reverse(bandwidth), request.serial)
    }
}

#[derive(Debug)]
struct Node {
    request: Request,
    weight: u64,
    /// Of the subtree, each of the two for itself.
    least: Constraint,
    left: u32,
    right: u32,
}

/// Requests that may go to the same layers, and need the same kind of slot.
#[derive(Debug)]
pub(crate) struct Line {
    order: Order,
    nodes: Vec<Node>,
    free: Vec<u32>,
    root: u32,
}

impl Default for Line {
    fn default() -> Line {
        Line::new(Order::Arrival)
    }
}

/// Spreads numbers evenly (the finaliser of splitmix64).
fn mixed(number: u64) -> u64 {
    let once = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let twice = (once ^ (once >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    twice ^ (twice >> 31)
}

impl Line {
    pub(crate) fn new(order: Order) -> Line {
        Line { order, nodes: Vec::new(), free: Vec::new(), root: NONE }
    }

    fn rank(&self, at: u32) -> Rank {
        self.order.rank(&self.nodes[at as usize].request)
    }

    /// The first request, whether it fits or not.
    pub(crate) fn head(&self) -> Option<&Request> {
        let mut node = self.nodes.get(self.root as usize)?;
        while let Some(left) = self.nodes.get(node.left as usize) {
            node = left;
        }
        Some(&node.request)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.root == NONE
    }

    /// Adds a request; no other has its place.
    pub(crate) fn insert(&mut self, request: Request) {
        let weight = mixed(request.serial);
        let least = request.constraint;
        let node = Node { request, weight, least, left: NONE, right: NONE };
        let id = match self.free.pop() {
            Some(id) => {
                self.nodes[id as usize] = node;
                id
            }
            None => {
                self.nodes.push(node);
                u32::try_from(self.nodes.len() - 1).expect("fewer than 2^32 requests")
            }
        };
        self.root = self.put(self.root, id);
    }

    fn put(&mut self, at: u32, id: u32) -> u32 {
        if at == NONE {
            return id;
        }
        let target = self.rank(id);
        if self.nodes[id as usize].weight > self.nodes[at as usize].weight {
            let (left, right) = self.split(at, target);
            self.nodes[id as usize].left = left;
            self.nodes[id as usize].right = right;
            self.sum(id);
            return id;
        }
        if target < self.rank(at) {
            let left = self.put(self.nodes[at as usize].left, id);
            self.nodes[at as usize].left = left;
        } else {
            let right = self.put(self.nodes[at as usize].right, id);
            self.nodes[at as usize].right = right;
        }
        self.sum(at);
        at
    }

    /// What comes before a place, and what comes after it.
    fn split(&mut self, at: u32, target: Rank) -> (u32, u32) {
        if at == NONE {
            return (NONE, NONE);
        }
        let parts = if self.rank(at) < target {
            let (left, right) = self.split(self.nodes[at as usize].right, target);
            self.nodes[at as usize].right = left;
            (at, right)
        } else {
            let (left, right) = self.split(self.nodes[at as usize].left, target);
            self.nodes[at as usize].left = right;
            (left, at)
        };
        self.sum(at);
        parts
    }

    fn merge(&mut self, left: u32, right: u32) -> u32 {
        if left == NONE || right == NONE {
            return if left == NONE { right } else { left };
        }
        if self.nodes[left as usize].weight > self.nodes[right as usize].weight {
            let merged = self.merge(self.nodes[left as usize].right, right);
            self.nodes[left as usize].right = merged;
            self.sum(left);
            return left;
        }
        let merged = self.merge(left, self.nodes[right as usize].left);
        self.nodes[right as usize].left = merged;
        self.sum(right);
        right
    }

    fn sum(&mut self, at: u32) {
        let node = &self.nodes[at as usize];
        let mut least = node.request.constraint;
        for child in [node.left, node.right] {
            if let Some(child) = self.nodes.get(child as usize) {
                least.bandwidth = least.bandwidth.min(child.least.bandwidth);
                least.size = least.size.min(child.least.size);
            }
        }
        self.nodes[at as usize].least = least;
    }

    /// Takes a request out; whether it was there.
    pub(crate) fn remove(&mut self, request: &Request) -> bool {
        let free = self.free.len();
        self.root = self.without(self.root, self.order.rank(request));
        self.free.len() > free
    }

    fn without(&mut self, at: u32, target: Rank) -> u32 {
        if at == NONE {
            return NONE;
        }
        let Node { left, right, .. } = self.nodes[at as usize];
        let own = self.rank(at);
        if target == own {
            self.free.push(at);
            return self.merge(left, right);
        }
        if target < own {
            self.nodes[at as usize].left = self.without(left, target);
        } else {
            self.nodes[at as usize].right = self.without(right, target);
        }
        self.sum(at);
        at
    }

    /// The first request that fits, and where.
    pub(crate) fn first(&self, room: &Room) -> Option<(Request, Slot)> {
        self.first_under(self.root, room)
    }

    fn first_under(&self, at: u32, room: &Room) -> Option<(Request, Slot)> {
        let node = self.nodes.get(at as usize)?;
        // No layer has room for both leasts: no request here fits.
        if !room.may_fit(node.least, &node.request) {
            return None;
        }
        if let Some(found) = self.first_under(node.left, room) {
            return Some(found);
        }
        if let Some(slot) = room.slot(&node.request) {
            return Some((node.request, slot));
        }
        self.first_under(node.right, room)
    }
}

#[cfg(test)]
mod tests {
    //! The tree against a sorted list.

    use alloc::vec::Vec;

    use graph::{slab::Key, TaskId};

    use super::{Line, Order, Request, Room, Slot};
    use crate::api::{Constraint, ExecutorId, FunctionId, Kind, Way};
    use crate::layers::Mask;

    fn request(
        task: TaskId,
        kind: Kind,
        priority: i32,
        serial: u64,
        constraint: Constraint,
    ) -> Request {
        let (function, layer, not) = (FunctionId(0), None, Mask::default());
        Request { task, kind, function, priority, serial, constraint, layer, not }
    }

    fn room(bandwidth: u64, size: u64) -> Room {
        let mut room = Room::default();
        let slot = Slot { executor: ExecutorId(0), layer: None };
        room.add(slot, Kind::Io, bandwidth, size);
        room
    }

    #[test]
    fn the_first_that_fits_is_found_as_in_a_list() {
        as_in_a_list(Order::Arrival);
        as_in_a_list(Order::Bandwidth);
    }

    fn as_in_a_list(order: Order) {
        let mut state = 1u64;
        let mut roll = |sides: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % sides
        };
        let mut line = Line::new(order);
        let mut list: Vec<Request> = Vec::new();
        for serial in 0..3000 {
            let task = TaskId(Key { index: serial as u32, generation: 0 });
            let constraint = Constraint { bandwidth: roll(50), size: roll(50), way: Way::Read };
            let priority = roll(3) as i32;
            let kind = Kind::Io;
            let request = request(task, kind, priority, serial, constraint);
            line.insert(request);
            list.push(request);
            list.sort_by_key(|request| order.rank(request));
            assert_eq!(line.head(), list.first());
            for _ in 0..roll(3) {
                let (bandwidth, size) = (roll(30), roll(30));
                let fits = |request: &&Request| {
                    request.constraint.bandwidth <= bandwidth && request.constraint.size <= size
                };
                let expected = list.iter().find(fits).copied();
                let found = line.first(&room(bandwidth, size)).map(|(request, _)| request);
                assert_eq!(found, expected);
                if let Some(request) = found {
                    line.remove(&request);
                    list.retain(|other| *other != request);
                }
            }
            assert_eq!(line.is_empty(), list.is_empty());
        }
    }

    #[test]
    fn a_line_in_order_of_arrival_is_not_deep() {
        let mut line = Line::default();
        for serial in 0..100_000 {
            let task = TaskId(Key { index: 0, generation: 0 });
            let constraint = Constraint::default();
            line.insert(request(task, Kind::Engine, 0, serial, constraint));
        }
        let mut deepest = 0;
        let mut under = Vec::from([(line.root, 1)]);
        while let Some((at, depth)) = under.pop() {
            let Some(node) = line.nodes.get(at as usize) else { continue };
            deepest = deepest.max(depth);
            under.extend([(node.left, depth + 1), (node.right, depth + 1)]);
        }
        assert!(deepest < 64, "{deepest} levels");
    }
}
