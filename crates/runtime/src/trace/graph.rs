//! The task graph, from the trace.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use sched::Kind;

use super::{RecordKind, Snapshot};

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphEnd {
    /// It is not over.
    Open,
    /// Well.
    Done,
    /// It failed, or one that it needed did.
    Failed,
    /// The program cancelled it.
    Cancelled,
}

/// One task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphNode {
    /// Its identifier ([`sched::TaskId::to_bits`]).
    pub task: u64,
    /// Its name.
    pub name: Arc<str>,
    /// Compute or I/O.
    pub kind: Kind,
    /// How long its last run took.
    pub ran_ns: Option<u64>,
    /// How it ended.
    pub end: GraphEnd,
}

/// Tasks and which needs a version of which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// In order of submission.
    pub nodes: Vec<GraphNode>,
    /// From the task that makes a version to the one that needs it.
    pub edges: Vec<(u64, u64)>,
}

/// Reads the graph out of a trace.
pub(crate) fn build(trace: &Snapshot) -> io::Result<Graph> {
    let mut graph = Graph::default();
    let mut places: HashMap<u64, usize> = HashMap::new();
    trace.for_each(&mut |record| match record.kind {
        RecordKind::Submitted => {
            places.insert(record.task, graph.nodes.len());
            graph.nodes.push(GraphNode {
                task: record.task,
                name: trace.name(record.function).into(),
                kind: if record.amount == 0 { Kind::Compute } else { Kind::Io },
                ran_ns: None,
                end: GraphEnd::Open,
            });
        }
        RecordKind::Edge => graph.edges.push((record.other, record.task)),
        RecordKind::Ran | RecordKind::Over => {
            let Some(place) = places.get(&record.task) else { return };
            let node = &mut graph.nodes[*place];
            match (record.kind, record.amount) {
                (RecordKind::Ran, ns) => node.ran_ns = Some(ns),
                (_, 0) => node.end = GraphEnd::Done,
                (_, 2) => node.end = GraphEnd::Cancelled,
                _ => node.end = GraphEnd::Failed,
            }
        }
        _ => {}
    })?;
    Ok(graph)
}
