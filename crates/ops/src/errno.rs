//! Why an operation failed: the number that the kernel gave, with its name and meaning.

use std::ffi::CStr;
use std::fmt;
use std::io;

/// An error number of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

/// Names of the numbers that file operations give.
macro_rules! names {
    ($($name:ident)*) => {
        [$((libc::$name, stringify!($name))),*]
    };
}

const NAMES: [(i32, &str); 47] = names! {
    EPERM ENOENT EINTR EIO ENXIO E2BIG EBADF EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST EXDEV ENODEV
    ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE
    EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY ELOOP ENODATA ETIME EREMOTEIO EOVERFLOW EILSEQ
    EOPNOTSUPP ETIMEDOUT ESTALE EDQUOT ENOMEDIUM ECANCELED EKEYREVOKED EUCLEAN
};

impl Errno {
    /// What the last system call of this thread left.
    pub fn last() -> Self {
        Self::from(io::Error::last_os_error())
    }

    /// Its name in the C headers; `None` for numbers that files do not give.
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(number, _)| *number == self.0).map(|(_, name)| *name)
    }

    /// What the C library says that it means.
    pub fn meaning(self) -> String {
        let mut text = [0 as libc::c_char; 128];
        // SAFETY: the array is writable, and its length is given.
        let failed = unsafe { libc::strerror_r(self.0, text.as_mut_ptr(), text.len()) };
        if failed != 0 {
            return format!("unknown error {}", self.0);
        }
        // SAFETY: a success leaves a text within the array, ended by a zero.
        unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned()
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name}: {}", self.meaning()),
            None => write!(f, "errno {}: {}", self.0, self.meaning()),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Errno({self})")
    }
}

impl std::error::Error for Errno {}

impl From<io::Error> for Errno {
    /// The number in the error; `EIO` for an error that did not come from the kernel.
    fn from(error: io::Error) -> Self {
        Self(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_with_name_and_meaning() {
        assert_eq!(Errno(libc::ENOSPC).to_string(), "ENOSPC: No space left on device");
        assert!(Errno(99_999).to_string().starts_with("errno 99999: "));
    }

    #[test]
    fn it_travels_through_the_standard_librarys_errors() {
        assert_eq!(Errno::from(io::Error::from(Errno(libc::EROFS))), Errno(libc::EROFS));
        assert_eq!(Errno::from(io::Error::other("ours")), Errno(libc::EIO));
    }
}
