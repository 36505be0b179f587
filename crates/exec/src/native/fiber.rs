//! Fibers: stacks of their own that run until they leave, and are continued later.

use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::stacks::Stack;

/// What a fiber is told when it is continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Go {
    /// Go on.
    On,
    /// Nothing will come any more: return.
    End,
}

/// Why a fiber left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// In the middle of something: somebody has to continue it.
    Paused,
    /// It has nothing to do.
    Idle,
    /// It returned.
    Ended,
}

/// A fiber. It never changes its thread, and has to be run to its end.
pub struct Fiber(Coroutine<Go, Left, (), Stack>);

/// The way out of a fiber, for the code inside.
pub struct Way<'a>(&'a Yielder<Go, Left>);

impl Fiber {
    /// A fiber that has not begun. `body` gets the way out; what it is told first is `Go::On`.
    pub fn new(stack: Stack, body: impl FnOnce(&Way<'_>) + 'static) -> Fiber {
        Fiber(Coroutine::with_stack(stack, move |yielder, _: Go| body(&Way(yielder))))
    }

    /// Continues it until it leaves again. Not after it has ended.
    pub fn go(&mut self, go: Go) -> Left {
        match self.0.resume(go) {
            CoroutineResult::Yield(left) => left,
            CoroutineResult::Return(()) => Left::Ended,
        }
    }
}

impl Way<'_> {
    /// Leaves the fiber; returns when it is continued.
    pub fn leave(&self, left: Left) -> Go {
        assert_ne!(left, Left::Ended, "a fiber ends by returning");
        self.0.suspend(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::stacks::{Limits, Stacks};
    use std::cell::RefCell;
    use std::rc::Rc;

    #[test]
    fn a_fiber_goes_on_where_it_left() {
        let pool = Stacks::new(Limits { stack_bytes: 64 << 10, stacks_max: 1 });
        let told = Rc::new(RefCell::new(Vec::new()));
        let inside = told.clone();
        let mut fiber = Fiber::new(pool.take().unwrap().unwrap(), move |way| {
            let local = 41;
            let first = way.leave(Left::Paused);
            inside.borrow_mut().push((local + 1, first));
            let second = way.leave(Left::Idle);
            inside.borrow_mut().push((local, second));
        });
        assert_eq!(
            [Go::On, Go::On, Go::End].map(|go| fiber.go(go)),
            [Left::Paused, Left::Idle, Left::Ended]
        );
        assert_eq!(*told.borrow(), [(42, Go::On), (41, Go::End)]);
        drop(fiber);
        assert_eq!(pool.taken(), (0, 1));
    }
}
