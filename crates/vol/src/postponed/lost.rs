//! What failed and is still to be told.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use runtime::behind::Failed;

use crate::object::{Container, Object};
use crate::opened::Key;

/// Failures by the file that they were in.
pub struct Lost {
    all: Mutex<Vec<(Weak<Container>, Failed)>>,
    count: AtomicUsize,
}

impl Lost {
    pub const fn new() -> Lost {
        Lost { all: Mutex::new(Vec::new()), count: AtomicUsize::new(0) }
    }

    pub fn add(&self, container: &Arc<Container>, failed: &Failed) {
        let mut all = self.all.lock();
        all.push((Arc::downgrade(container), failed.clone()));
        self.count.store(all.len(), Ordering::Release);
    }

    /// Takes those that are wanted out.
    fn take_if(&self, is_wanted: impl Fn(&Weak<Container>, &Failed) -> bool) -> Vec<Failed> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let mut all = self.all.lock();
        let (wanted, rest) = std::mem::take(&mut *all)
            .into_iter()
            .partition(|(container, failed)| is_wanted(container, failed));
        *all = rest;
        self.count.store(all.len(), Ordering::Release);
        let wanted: Vec<(Weak<Container>, Failed)> = wanted;
        wanted.into_iter().map(|(_, failed)| failed).collect()
    }

    pub fn take_of(&self, container: &Arc<Container>) -> Vec<Failed> {
        self.take_if(|its, _| std::ptr::eq(its.as_ptr(), Arc::as_ptr(container)))
    }

    pub fn take(&self, keys: Option<&[Key]>) -> Vec<Failed> {
        let is_in = |its: &Weak<Container>, keys| its.upgrade().is_some_and(|it| it.has_any(keys));
        self.take_if(|its, _| keys.is_none_or(|keys| is_in(its, keys)))
    }

    pub fn told(&self, failed: &Failed) {
        self.take_if(|_, other| Arc::ptr_eq(&other.label, &failed.label));
    }

    pub fn at(&self, object: &Object) -> Option<Failed> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let name = object.path.get();
        let is_its = |failed: &Failed| {
            let label = failed.label.object.as_ref();
            label.is_some_and(|label| Arc::ptr_eq(label, &object.path))
                || name.is_some() && label.and_then(|label| label.get()) == name
        };
        let all = self.all.lock();
        let mut its = all.iter().filter(|(container, _)| {
            std::ptr::eq(container.as_ptr(), Arc::as_ptr(&object.container))
        });
        its.find(|(_, failed)| is_its(failed)).map(|(_, failed)| failed.clone())
    }
}
