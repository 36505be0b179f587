//! The memory that the driver and its workers share: the control area and the heap.
//!
//! Both are memory files without a name, inherited as descriptors; they are gone when the last
//! process that has them is gone.
//!
//! # Control area
//!
//! One page-aligned [`Head`] (the driver's sleep flag, the limiters), then [`AREAS_MAX`] areas of
//! [`AREA_BYTES`], one a worker: [`AreaHead`] (sleep flag, ring headers, claims), the ring to the
//! worker, the ring from it. Nothing is touched before it is used, so an unused area costs nothing.
//! All zeros is the state of a new area; an area is used again only after its worker was reaped.
//!
//! # Heap
//!
//! One sparse file mapped twice in every process: to read, and to write. The driver decides who
//! may use which range; nothing here knows.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;
use std::sync::Arc;

use crate::claims::Claims;
use crate::limiter::Cells;
use crate::ring::{Header, Line, Mapped};
use crate::sys;

/// How many workers there can be at a time.
pub const AREAS_MAX: usize = 256;
/// Bytes of a ring, each way.
pub const RING_BYTES: u64 = 256 << 10;
/// Bytes of a worker's area.
pub const AREA_BYTES: usize = size_of::<AreaHead>() + 2 * RING_BYTES as usize;
const CONTROL_BYTES: usize = size_of::<Head>() + AREAS_MAX * AREA_BYTES;
const MAGIC: u64 = 0x0001_6573_676e_6f6c;

/// What stands at the beginning of the control area.
#[repr(C, align(4096))]
pub(crate) struct Head {
    magic: std::sync::atomic::AtomicU64,
    driver_asleep: Line<AtomicU32>,
    limiters: Cells,
}

/// What stands at the beginning of a worker's area.
#[repr(C, align(4096))]
pub(crate) struct AreaHead {
    worker_asleep: Line<AtomicU32>,
    to_worker: Header,
    from_worker: Header,
    claims: Claims,
}

const _: () = assert!(size_of::<Head>() % 4096 == 0);
const _: () = assert!(size_of::<AreaHead>() == 36864 && AREA_BYTES % 4096 == 0);

/// A mapping of a file, unmapped on drop.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping is memory at a fixed place; what may be done with it is said by its users.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(fd: BorrowedFd<'_>, bytes: usize, writable: bool) -> io::Result<Self> {
        let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let start =
            unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, fd.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("a mapping is not at address 0");
        let mapping = Self { start, bytes };
        mapping.advise(0, bytes as u64, libc::MADV_DONTDUMP);
        Ok(mapping)
    }

    /// Gives the kernel a hint; it may not know it.
    fn advise(&self, offset: u64, len: u64, advice: libc::c_int) -> bool {
        assert!(offset + len <= self.bytes as u64, "advice is about the mapping");
        // SAFETY: within the mapping, and no advice that is given here changes what it holds.
        unsafe {
            let start = self.start.as_ptr().add(offset as usize);
            libc::madvise(start.cast(), len as usize, advice) == 0
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody who borrows from it outlives it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

fn file_bytes(fd: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(File::from(fd.try_clone_to_owned()?).metadata()?.len())
}

/// The control area, mapped.
#[derive(Debug)]
pub struct Control {
    mapping: Mapping,
    fd: OwnedFd,
}

impl Control {
    /// A new one.
    pub(crate) fn new() -> io::Result<Self> {
        let fd = sys::memfd(c"alongside-control", CONTROL_BYTES as u64)?;
        let mapping = Mapping::new(fd.as_fd(), CONTROL_BYTES, true)?;
        let control = Self { mapping, fd };
        control.head().magic.store(MAGIC, std::sync::atomic::Ordering::Release);
        Ok(control)
    }

    /// The one that an inherited descriptor leads to.
    pub(crate) fn open(fd: OwnedFd) -> io::Result<Self> {
        let wrong = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        if file_bytes(fd.as_fd())? != CONTROL_BYTES as u64 {
            return Err(wrong("the control area has another size: driver and worker differ"));
        }
        let mapping = Mapping::new(fd.as_fd(), CONTROL_BYTES, true)?;
        let control = Self { mapping, fd };
        if control.head().magic.load(std::sync::atomic::Ordering::Acquire) != MAGIC {
            return Err(wrong("the control area is of another version"));
        }
        Ok(control)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn head(&self) -> &Head {
        // SAFETY: the mapping begins with a `Head`, which is valid as zeros and all atomics.
        unsafe { self.mapping.start.cast::<Head>().as_ref() }
    }

    fn place<T>(&self, offset: usize) -> NonNull<T> {
        assert!(offset + size_of::<T>() <= self.mapping.bytes, "within the control area");
        // SAFETY: within the mapping, as just asserted.
        unsafe { self.mapping.start.add(offset).cast() }
    }

    fn area_start(area: usize) -> usize {
        assert!(area < AREAS_MAX, "area {area} of {AREAS_MAX}");
        size_of::<Head>() + area * AREA_BYTES
    }

    fn area(&self, area: usize) -> &AreaHead {
        // SAFETY: the area begins with an `AreaHead`, valid as zeros and all atomics.
        unsafe { self.place::<AreaHead>(Self::area_start(area)).as_ref() }
    }

    /// Raised while the driver sleeps or is about to.
    pub(crate) fn driver_asleep(&self) -> &AtomicU32 {
        &self.head().driver_asleep.0
    }

    pub(crate) fn limiters(&self) -> &Cells {
        &self.head().limiters
    }

    /// Raised while the worker of this area sleeps or is about to.
    pub(crate) fn worker_asleep(&self, area: usize) -> &AtomicU32 {
        &self.area(area).worker_asleep.0
    }

    pub(crate) fn claims(&self, area: usize) -> &Claims {
        &self.area(area).claims
    }

    /// Whether everything that the worker of this area has sent was received.
    pub(crate) fn is_received(&self, area: usize) -> bool {
        self.area(area).from_worker.is_empty()
    }

    /// Makes an area as new. Only when no live worker has it.
    pub(crate) fn reset(&self, area: usize) {
        let head = self.area(area);
        head.to_worker.reset();
        head.from_worker.reset();
        head.claims.reset();
        head.worker_asleep.0.store(0, std::sync::atomic::Ordering::Release);
    }
}

/// A ring in the control area.
pub(crate) type ControlRing = Mapped<Arc<Control>>;

fn ring(control: &Arc<Control>, header: &Header, data: usize) -> ControlRing {
    let _: NonNull<[u8; RING_BYTES as usize]> = control.place(data);
    // SAFETY: header and data lie in the mapping, which the ring keeps; `Pool` gives an area to
    // one worker at a time, and each side makes one producer and one consumer of it.
    unsafe { Mapped::new(NonNull::from(header), control.place(data), RING_BYTES, control.clone()) }
}

/// The ring by which the driver speaks to the worker of an area.
pub(crate) fn to_worker(control: &Arc<Control>, area: usize) -> ControlRing {
    let data = Control::area_start(area) + size_of::<AreaHead>();
    ring(control, &control.area(area).to_worker, data)
}

/// The ring by which the worker of an area speaks to the driver.
pub(crate) fn from_worker(control: &Arc<Control>, area: usize) -> ControlRing {
    let data = Control::area_start(area) + size_of::<AreaHead>() + RING_BYTES as usize;
    ring(control, &control.area(area).from_worker, data)
}

/// The memory of the object store: one sparse range of bytes, the same in all processes.
#[derive(Debug)]
pub struct Heap {
    read: Mapping,
    write: Mapping,
    fd: OwnedFd,
}

impl Heap {
    /// A new one of `bytes` (address space; memory is taken when it is touched).
    pub(crate) fn new(bytes: u64) -> io::Result<Self> {
        Self::open(sys::memfd(c"alongside-heap", bytes.next_multiple_of(2 << 20))?)
    }

    /// The one that an inherited descriptor leads to.
    pub(crate) fn open(fd: OwnedFd) -> io::Result<Self> {
        let bytes = usize::try_from(file_bytes(fd.as_fd())?)
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let read = Mapping::new(fd.as_fd(), bytes, false)?;
        let write = Mapping::new(fd.as_fd(), bytes, true)?;
        Ok(Self { read, write, fd })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.read.bytes as u64
    }

    /// Whether a range lies within.
    pub fn contains(&self, offset: u64, len: u64) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.bytes())
    }

    fn place(&self, mapping: &Mapping, offset: u64, len: u64) -> NonNull<u8> {
        assert!(self.contains(offset, len), "{len} bytes at {offset} are not in the heap");
        // SAFETY: within the mapping, as just asserted.
        unsafe { mapping.start.add(offset as usize) }
    }

    /// Where a range can be read; writing there ends the process. Panics outside the heap.
    pub fn reader(&self, offset: u64, len: u64) -> NonNull<u8> {
        self.place(&self.read, offset, len)
    }

    /// Where a range can be written. Panics outside the heap.
    pub fn writer(&self, offset: u64, len: u64) -> NonNull<u8> {
        self.place(&self.write, offset, len)
    }

    /// A range, to read.
    ///
    /// # Safety
    /// While the slice lives the range is not freed, and nobody writes it.
    pub unsafe fn slice(&self, offset: u64, len: u64) -> &[u8] {
        // SAFETY: mapped and initialised (a file of zeros); the rest is the caller's word.
        unsafe { std::slice::from_raw_parts(self.reader(offset, len).as_ptr(), len as usize) }
    }

    /// A range, to write.
    ///
    /// # Safety
    /// While the slice lives the range belongs to the caller alone.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice_mut(&self, offset: u64, len: u64) -> &mut [u8] {
        // SAFETY: mapped and initialised (a file of zeros); the rest is the caller's word.
        unsafe { std::slice::from_raw_parts_mut(self.writer(offset, len).as_ptr(), len as usize) }
    }

    /// Gives the memory of whole pages within a range back; the range reads as zeros.
    ///
    /// # Safety
    /// Nobody looks at the range.
    pub unsafe fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        assert!(self.contains(offset, len), "{len} bytes at {offset} are not in the heap");
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (offset, len) = (offset as libc::off_t, len as libc::off_t);
        // SAFETY: changes the bytes of a range that, by the caller's word, nobody looks at.
        sys::check(unsafe { libc::fallocate(self.fd.as_raw_fd(), mode, offset, len) })?;
        Ok(())
    }

    /// Maps the pages of a range for reading at once, which is quicker than one fault a page.
    /// Does nothing where the kernel cannot.
    pub fn prefault_read(&self, offset: u64, len: u64) {
        prefault(&self.read, offset, len, libc::MADV_POPULATE_READ);
    }

    /// Likewise for writing; takes memory for pages that have none. `false`: out of memory, or
    /// the kernel cannot.
    pub fn prefault_write(&self, offset: u64, len: u64) -> bool {
        prefault(&self.write, offset, len, libc::MADV_POPULATE_WRITE)
    }

    /// Bytes of memory that the heap has at this moment.
    pub fn resident_bytes(&self) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt;
        Ok(File::from(self.fd.try_clone()?).metadata()?.blocks() * 512)
    }
}

pub(crate) const PAGE_BYTES: u64 = 4096;

fn prefault(mapping: &Mapping, offset: u64, len: u64, advice: libc::c_int) -> bool {
    let start = offset - offset % PAGE_BYTES;
    let end = (offset + len).next_multiple_of(PAGE_BYTES).min(mapping.bytes as u64);
    mapping.advise(start, end - start, advice)
}
