//! Callbacks that do no more than pass a call to the connector below.
//!
//! Each is given its name, the symbol of HDF5 that passes it on, what errors call it, and what it
//! is passed between the object and the last two (transfer list and request). The connector's id
//! goes where the `;` is, as in HDF5's own declarations.

/// A call for one object, of which HDF5 wants a status.
macro_rules! act {
    ($name:ident = $symbol:ident, $operation:literal, $($args:tt)*) => {
        $crate::forward::act_by! { act, $name = $symbol, $operation, $($args)* }
    };
}

/// As [`act`], of a call that neither sees nor changes what a dataset holds.
macro_rules! act_beside {
    ($name:ident = $symbol:ident, $operation:literal, $($args:tt)*) => {
        $crate::forward::act_by! { act_beside, $name = $symbol, $operation, $($args)* }
    };
}

/// A call for one object, by one of the two.
macro_rules! act_by {
    ($act:ident, $name:ident = $symbol:ident, $operation:literal,
     ($($before:ident: $first:ty),*; $($after:ident: $second:ty),*)) => {
        unsafe extern "C" fn $name(
            object: $crate::abi::Ptr,
            $($before: $first,)*
            $($after: $second,)*
            list: $crate::abi::Id,
            req: $crate::abi::Req,
        ) -> $crate::abi::Status {
            // SAFETY: HDF5 passes an object of ours; what else it passes goes on as it is.
            unsafe {
                let object = $crate::object::Object::of(object);
                let call = object.container.hdf5.symbols.$symbol;
                let lists = [
                    $($crate::elink::Parameter::access($before),)*
                    $($crate::elink::Parameter::access($after),)*
                ];
                $crate::elink::with(object.container.hdf5, &lists, || {
                    object.$act($operation, req, |it, below, req| {
                        call(it, $($before,)* below, $($after,)* list, req)
                    })
                })
            }
        }
    };
}

/// A call that makes or opens something; `$path` is the path that it has, of the object `$object`.
macro_rules! open {
    ($name:ident = $symbol:ident, $operation:literal,
     ($($before:ident: $first:ty),*; $($after:ident: $second:ty),*),
     $object:ident => $path:expr) => {
        unsafe extern "C" fn $name(
            $object: $crate::abi::Ptr,
            $($before: $first,)*
            $($after: $second,)*
            list: $crate::abi::Id,
            req: $crate::abi::Req,
        ) -> $crate::abi::Ptr {
            // SAFETY: HDF5 passes an object of ours, and as a name a text; what else it passes
            // goes on as it is.
            unsafe {
                let $object = $crate::object::Object::of($object);
                let call = $object.container.hdf5.symbols.$symbol;
                let lists = [
                    $($crate::elink::Parameter::access($before),)*
                    $($crate::elink::Parameter::access($after),)*
                ];
                let made = $crate::elink::with($object.container.hdf5, &lists, || {
                    $object.act_beside($operation, req, |it, below, req| {
                        call(it, $($before,)* below, $($after,)* list, req)
                    })
                });
                $crate::object::Object::wrap(&$object.container, made, $path)
            }
        }
    };
}

/// A specific call, of which one kind is a flush: all of the file is written after it.
macro_rules! change {
    ($name:ident = $symbol:ident, $operation:literal,
     ($($before:ident: $first:ty),*), flush = $flush:expr) => {
        unsafe extern "C" fn $name(
            object: $crate::abi::Ptr,
            $($before: $first,)*
            args: $crate::abi::Ptr,
            list: $crate::abi::Id,
            req: $crate::abi::Req,
        ) -> $crate::abi::Status {
            // SAFETY: HDF5 passes an object of ours and a block that begins with what is wanted.
            // A refresh may replace the object: the container is kept.
            unsafe {
                let is_flush = (*args.cast::<$crate::abi::AnyArgs>()).operation == $flush;
                let object = $crate::object::Object::of(object);
                let container = object.container.clone();
                let call = container.hdf5.symbols.$symbol;
                let lists = [$($crate::elink::Parameter::access($before),)* None];
                let status = $crate::elink::with(container.hdf5, &lists, || {
                    object.act($operation, req, |it, below, req| {
                        call(it, $($before,)* below, args, list, req)
                    })
                });
                $crate::file::flushed(&container, status, is_flush)
            }
        }
    };
}

/// The close of an object without values.
macro_rules! close {
    ($name:ident = $symbol:ident, $operation:literal) => {
        unsafe extern "C" fn $name(
            object: $crate::abi::Ptr,
            list: $crate::abi::Id,
            req: $crate::abi::Req,
        ) -> $crate::abi::Status {
            // SAFETY: HDF5 passes an object of ours, and forgets it if this succeeds.
            unsafe {
                let ours = $crate::object::Object::of(object);
                let call = ours.container.hdf5.symbols.$symbol;
                let pass = |it, below, req| call(it, below, list, req);
                let status = ours.act_beside($operation, req, pass);
                if status >= 0 {
                    $crate::object::Object::free(object);
                }
                status
            }
        }
    };
}

/// A question that no bytes of a file come of; there are no transfer list and no request.
macro_rules! ask {
    ($name:ident = $symbol:ident,
     ($($before:ident: $first:ty),*; $($after:ident: $second:ty),*)) => {
        pub unsafe extern "C" fn $name(
            object: $crate::abi::Ptr,
            $($before: $first,)*
            $($after: $second,)*
        ) -> $crate::abi::Status {
            // SAFETY: HDF5 passes an object of ours; what else it passes goes on as it is.
            unsafe {
                let object = $crate::object::Object::of(object);
                let call = object.container.hdf5.symbols.$symbol;
                call(object.below, $($before,)* object.container.below, $($after,)*)
            }
        }
    };
}

pub(crate) use {act, act_beside, act_by, ask, change, close, open};
