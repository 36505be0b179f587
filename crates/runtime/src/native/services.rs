//! Polling services: functions of other libraries that the workers call between tasks.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Gives 1 when it is done and must not be called again.
pub type Poll = extern "C" fn(*mut c_void) -> i32;

/// How long an idle worker sleeps while a service is registered, in milliseconds.
pub(super) const IDLE_MS: i32 = 1;

/// A registered service: function and data together are its name.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// The function.
    pub poll: Poll,
    /// What it is called with.
    pub data: *mut c_void,
}

impl PartialEq for Service {
    fn eq(&self, other: &Service) -> bool {
        self.poll as usize == other.poll as usize && self.data == other.data
    }
}

// SAFETY: the program promised, by registering it, that any worker may call it (one at a time).
unsafe impl Send for Service {}

/// All services. Held locked while they are called: never two at a time, and who takes one back
/// knows that it does not run any more.
#[derive(Debug, Default)]
pub(super) struct Services {
    list: parking_lot::ReentrantMutex<std::cell::RefCell<Vec<Option<Service>>>>,
    count: AtomicUsize,
    calling: Mutex<()>,
}

impl Services {
    pub(super) fn are_there(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// `false`: it is registered already.
    pub(super) fn add(&self, service: Service) -> bool {
        let list = self.list.lock();
        let mut list = list.borrow_mut();
        if list.contains(&Some(service)) {
            return false;
        }
        list.push(Some(service));
        self.count.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// `false`: there is no such service.
    pub(super) fn remove(&self, service: Service) -> bool {
        let list = self.list.lock();
        let mut list = list.borrow_mut();
        let Some(at) = list.iter().position(|other| *other == Some(service)) else { return false };
        // Places stay while they are gone through: a service may take back itself or another.
        list[at] = None;
        self.count.fetch_sub(1, Ordering::AcqRel);
        true
    }

    /// Calls each once, unless somebody is at it.
    pub(super) fn call_all(&self) {
        if !self.are_there() {
            return;
        }
        let Some(_calling) = self.calling.try_lock() else { return };
        let Some(list) = self.list.try_lock() else { return };
        let mut at = 0;
        loop {
            let service = match list.borrow().get(at) {
                None => break,
                Some(service) => *service,
            };
            at += 1;
            let Some(service) = service else { continue };
            if (service.poll)(service.data) != 0 {
                self.remove(service);
            }
        }
        list.borrow_mut().retain(Option::is_some);
    }
}
