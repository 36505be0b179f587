//! Random programs on the graph and on a naive model of it: both agree after every step.

mod cells;
mod model;

use std::collections::BTreeSet;

use cells::POSITIONS_MAX;
use graph::{
    Access, DatumId, DatumKind, Direction, Graph, Limits, Region, Span, Target, TaskId, VersionId,
};
use model::{Model, Standing, State};
use proptest::prelude::*;

const DIRECTIONS: [Direction; 5] = [
    Direction::In,
    Direction::Out,
    Direction::InOut,
    Direction::Concurrent,
    Direction::Commutative,
];
const VALUES: usize = 2;
const PLACES: usize = 3;

/// An access before it is known which data there are.
#[derive(Clone, Debug)]
struct Plan {
    /// Below [`VALUES`] + [`PLACES`]: a datum; above: something that the program names.
    target: usize,
    direction: usize,
    /// Nothing: whole. Start and length of one span a dimension.
    spans: Option<[(u64, u64); 3]>,
    /// Another number of dimensions than that of the place.
    odd: bool,
}

#[derive(Clone, Debug)]
enum Op {
    Submit { returns: u32, plans: Vec<Plan> },
    Finish(usize),
    Fail(usize),
    Cancel(usize),
    TimeOut(usize),
    Release(usize, usize),
    ReleaseInPlace(usize, usize),
    Current(usize),
    Forget(usize),
    Drop(usize),
}

fn plan() -> impl Strategy<Value = Plan> {
    let span = (0..POSITIONS_MAX, 1..POSITIONS_MAX);
    let spans = prop::option::weighted(0.7, [span.clone(), span.clone(), span]);
    // Programs crowd on few data: only then do groups form and locks clash.
    let few = VALUES + PLACES;
    let target = prop_oneof![
        4 => Just(0),
        3 => Just(VALUES),
        3 => 1..few,
        2 => few..few + 3,
    ];
    (target, 0..DIRECTIONS.len(), spans, prop::bool::weighted(0.02))
        .prop_map(|(target, direction, spans, odd)| Plan { target, direction, spans, odd })
}

fn op() -> impl Strategy<Value = Op> {
    let any = 0usize..1000;
    prop_oneof![
        16 => (0u32..3, prop::collection::vec(plan(), 0..4))
            .prop_map(|(returns, plans)| Op::Submit { returns, plans }),
        8 => any.clone().prop_map(Op::Finish),
        2 => any.clone().prop_map(Op::Fail),
        2 => any.clone().prop_map(Op::Cancel),
        1 => any.clone().prop_map(Op::TimeOut),
        1 => (any.clone(), any.clone()).prop_map(|(task, output)| Op::Release(task, output)),
        1 => (any.clone(), any.clone()).prop_map(|(task, at)| Op::ReleaseInPlace(task, at)),
        1 => any.clone().prop_map(Op::Current),
        2 => any.clone().prop_map(Op::Forget),
        1 => prop::bool::weighted(0.1).prop_flat_map(move |_| any.clone().prop_map(Op::Drop)),
    ]
}

/// The graph and the model side by side.
struct World {
    graph: Graph<u32>,
    model: Model,
    data: Vec<DatumId>,
    /// What the program names, once for each time.
    names: Vec<VersionId>,
    failures: u32,
    settled: BTreeSet<VersionId>,
    /// The graph does not tell of versions of data in place, and nobody names one.
    quiet: bool,
}

impl World {
    fn new(limits: Limits, quiet: bool) -> World {
        let mut graph = Graph::with_limits(limits).with_quiet_places(quiet);
        let mut model = Model::default();
        let mut data = Vec::new();
        let mut names = Vec::new();
        for index in 0..VALUES {
            let initial = graph.add_value(8, 0);
            model.add_value(initial, 1);
            names.push(initial);
            let datum = graph.add_datum(DatumKind::Value, Some(initial)).expect("there");
            model.add_value_datum(datum, initial);
            assert_eq!(index, data.len());
            data.push(datum);
        }
        for _ in 0..PLACES {
            let datum = graph.add_datum(DatumKind::InPlace, None).expect("there");
            model.add_place(datum);
            data.push(datum);
        }
        World { graph, model, data, names, failures: 0, settled: BTreeSet::new(), quiet }
    }

    fn access(&self, plan: &Plan) -> Access {
        let direction = DIRECTIONS[plan.direction];
        if plan.target >= self.data.len() {
            if let Some(version) = self.names.get(plan.target * 7 % self.names.len().max(1)) {
                let target = Target::Version(*version);
                let direction = if plan.odd { direction } else { Direction::In };
                return Access { target, region: Region::Whole, direction };
            }
        }
        let index = plan.target % self.data.len();
        let target = Target::Datum(self.data[index]);
        // Values have no dimensions; the places have 1, 2 and 3.
        let dimensions = (index + 1).saturating_sub(VALUES) + usize::from(plan.odd);
        let region = match plan.spans {
            Some(spans) if dimensions > 0 => region(&spans[..dimensions.min(3)]),
            _ => Region::Whole,
        };
        Access { target, region, direction }
    }

    fn step(&mut self, op: &Op) {
        let pick = |tasks: Vec<TaskId>, at: usize| tasks.get(at % tasks.len().max(1)).copied();
        let running = self.model.in_state(&[State::Ready]);
        let at_executors = self.model.in_state(&[State::Ready, State::Zombie]);
        match op {
            Op::Submit { returns, plans } => self.submit(*returns, plans),
            Op::Finish(at) => pick(at_executors, *at).into_iter().for_each(|id| self.end(id)),
            Op::Fail(at) => pick(running, *at).into_iter().for_each(|id| self.fail(id, true)),
            Op::TimeOut(at) => pick(running, *at).into_iter().for_each(|id| self.fail(id, false)),
            Op::Cancel(at) => {
                let waiting = self.model.in_state(&[State::Waiting]);
                pick(waiting, *at).into_iter().for_each(|id| self.fail(id, true));
            }
            Op::Release(at, output) => {
                let Some(id) = pick(running, *at) else { return };
                let outputs = self.graph.outputs(id).to_vec();
                let Some(version) = outputs.get(output % outputs.len().max(1)) else { return };
                let expected = self.model.release(*version);
                let taken = self.graph.release(id, output % outputs.len(), 8, 0);
                assert_eq!(taken, expected, "release of {version:?}");
            }
            Op::ReleaseInPlace(at, access) => {
                let Some(id) = pick(running, *at) else { return };
                let writes: Vec<_> = self.graph.bound(id).iter().map(|bound| bound.write).collect();
                let access = access % (writes.len() + 1);
                let version = writes.get(access).copied().flatten();
                let expected = version.is_some_and(|it| self.model.release_in_place(it));
                assert_eq!(self.graph.release_in_place(id, access, 0), expected, "{version:?}");
            }
            Op::Current(at) => {
                let datum = self.data[at % if self.quiet { VALUES } else { self.data.len() }];
                if !self.model.is_dropped(datum) {
                    let expected = self.model.current(datum);
                    assert_eq!(self.graph.current(datum), expected);
                    self.names.extend(expected);
                }
            }
            Op::Forget(at) => self.forget(*at),
            Op::Drop(at) => {
                // One of each kind stays.
                if at % 10 == 0 {
                    self.drop_datum(self.data[if at % 20 == 0 { 0 } else { VALUES }]);
                }
            }
        }
    }

    fn submit(&mut self, returns: u32, plans: &[Plan]) {
        let accesses: Vec<Access> = plans.iter().map(|plan| self.access(plan)).collect();
        let versions = self.graph.live_versions();
        let taken = self.graph.submit(returns, &accesses);
        if let Some(refused) = self.model.refusal(&accesses) {
            assert_eq!(taken, Err(refused), "{accesses:?}");
            assert_eq!(self.graph.live_versions(), versions, "a refusal changes nothing");
            return;
        }
        let id = taken.expect("the model takes it");
        let (bound, outputs) = (self.graph.bound(id).to_vec(), self.graph.outputs(id).to_vec());
        self.names.extend(&outputs[..returns as usize]);
        self.model.submit(id, accesses, &bound, &outputs, returns as usize);
    }

    fn end(&mut self, id: TaskId) {
        match self.model.task(id).state {
            State::Zombie => {
                self.graph.remove(id);
                self.model.task_mut(id).state = State::Dead;
            }
            _ => {
                self.graph.finish(id, &[8, 8, 8], 0);
                self.model.task_mut(id).state = State::Done;
            }
        }
    }

    fn fail(&mut self, id: TaskId, over: bool) {
        self.failures += 1;
        self.graph.poison(id, &self.failures);
        if over {
            self.graph.remove(id);
        }
        self.model.poison(id, self.failures, if over { State::Dead } else { State::Zombie });
    }

    fn forget(&mut self, at: usize) {
        if !self.names.is_empty() {
            let version = self.names.remove(at % self.names.len());
            self.graph.unhold(version);
            self.model.name(version, false);
        }
    }

    fn drop_datum(&mut self, datum: DatumId) {
        if !self.model.is_dropped(datum) {
            self.graph.drop_datum(datum);
            self.model.drop_datum(datum);
        }
    }

    fn is_quiet(&self, version: VersionId) -> bool {
        self.quiet && self.model.is_in_place(version)
    }

    /// Takes all that the graph has to say, and compares.
    fn listen(&mut self) {
        loop {
            while let Some((version, failure)) = self.graph.pop_settled() {
                let standing = failure.map_or(Standing::Available, Standing::Failed);
                assert_eq!(self.model.standing(version), standing, "{version:?}");
                assert!(self.settled.insert(version), "{version:?} settles once");
                assert!(!self.is_quiet(version), "{version:?} is told of");
            }
            let Some((id, failure)) = self.graph.pop_doomed() else { break };
            let needed = self.model.failures(self.model.task(id));
            assert!(needed.contains(&failure), "{id:?} doomed by {failure}, needs {needed:?}");
            assert_eq!(self.model.task(id).state, State::Waiting, "{id:?} doomed once");
            self.graph.poison(id, &failure);
            self.graph.remove(id);
            self.model.poison(id, failure, State::Dead);
        }
        let (untold, expected): (BTreeSet<_>, BTreeSet<_>) =
            self.model.obsolete().into_iter().partition(|version| self.is_quiet(*version));
        untold.into_iter().for_each(|version| self.model.set_gone(version));
        let mut obsolete = BTreeSet::new();
        while let Some(version) = self.graph.pop_obsolete() {
            assert!(obsolete.insert(version));
            self.model.set_gone(version);
        }
        assert_eq!(obsolete, expected, "obsolete: the graph's (left), the model's (right)");
        while let Some(id) = self.graph.pop_ready() {
            let task = self.model.task(id);
            assert_eq!(task.state, State::Waiting, "{id:?} is ready once");
            assert!(self.model.edges_met(task), "{id:?} is ready early");
            let holder = self.model.lock_holder(task);
            assert_eq!(holder, None, "{id:?} has the lock of another");
            self.model.task_mut(id).state = State::Ready;
        }
        for task in self.model.tasks.iter().filter(|task| task.state == State::Waiting) {
            let id = task.id;
            assert_eq!(self.model.failures(task), [], "{id:?} should be doomed");
            if self.model.edges_met(task) {
                assert_ne!(self.model.lock_holder(task), None, "{id:?} should be ready");
            }
        }
        assert_eq!(self.graph.live_tasks(), self.model.live_tasks());
        assert_eq!(self.graph.live_versions(), self.model.live_versions());
        self.graph.validate().expect("sound");
    }

    /// Everything ends well, every name is forgotten: nothing is left.
    fn wind_up(&mut self) {
        while let Some(id) = self.model.in_state(&[State::Ready, State::Zombie]).first() {
            self.end(*id);
            self.listen();
        }
        assert_eq!(self.model.live_tasks(), 0, "all tasks came to an end");
        while !self.names.is_empty() {
            self.forget(0);
            self.listen();
        }
        for datum in self.data.clone() {
            self.drop_datum(datum);
            self.listen();
        }
        assert_eq!(self.graph.live_versions(), 0, "nothing is kept");
    }
}

fn region(spans: &[(u64, u64)]) -> Region {
    let span = |(start, length): &(u64, u64)| {
        let end = (start + length).min(POSITIONS_MAX);
        Span { start: *start, end }
    };
    let spans: Vec<Span> = spans.iter().map(span).collect();
    match spans[..] {
        [one] => Region::Range(one),
        _ => Region::Box(spans.into_boxed_slice()),
    }
}

fn run(limits: Limits, quiet: bool, ops: &[Op]) {
    let mut world = World::new(limits, quiet);
    world.listen();
    for op in ops {
        world.step(op);
        world.listen();
    }
    world.wind_up();
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_graph_agrees_with_the_model(ops in prop::collection::vec(op(), 1..100)) {
        run(Limits::default(), false, &ops);
    }

    /// What ended is dropped all the time, so the corners of that are reached.
    #[test]
    fn the_graph_agrees_when_it_keeps_little(ops in prop::collection::vec(op(), 1..100)) {
        run(Limits { regions_max: 2, unsearched_max: 1 }, false, &ops);
    }

    #[test]
    fn the_graph_agrees_when_it_is_quiet(
        ops in prop::collection::vec(op(), 1..100),
        keeps_little in any::<bool>(),
    ) {
        let little = Limits { regions_max: 2, unsearched_max: 1 };
        run(if keeps_little { little } else { Limits::default() }, true, &ops);
    }
}
