//! The windows that the controller chooses from: about 1, 2, 3, 4, 6, 8, 11 ... 4096 tasks.

/// How many windows there are.
pub(crate) const LEVELS: usize = 24;

/// Tasks at once, each about the square root of two times the one before.
const TASKS: [u32; LEVELS] = [
    1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256, 362, 512, 724, 1024, 1448, 2048,
    2896, 4096,
];

/// Two steps are a factor of two.
pub(crate) const COARSE: usize = 2;

/// The window of a level.
pub(crate) fn tasks(level: usize) -> u32 {
    TASKS[level]
}

/// The level nearest to so many tasks at once, by ratio.
pub(crate) fn nearest(tasks: f64) -> usize {
    let above = TASKS.partition_point(|window| f64::from(*window) < tasks).min(LEVELS - 1);
    let Some(below) = above.checked_sub(1) else { return above };
    let (low, high) = (f64::from(TASKS[below]), f64::from(TASKS[above]));
    if tasks * tasks < low * high {
        below
    } else {
        above
    }
}

/// The highest level that so many slots can fill.
pub(crate) fn highest(slots: u32) -> usize {
    TASKS.partition_point(|window| *window < slots).min(LEVELS - 1)
}

/// The level in the middle between one task and all slots, by ratio.
pub(crate) fn middle(slots: u32) -> usize {
    let squares = |window: &u32| u64::from(*window) * u64::from(*window) <= u64::from(slots);
    TASKS.partition_point(squares).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    //! The table is even, and the nearest level is the nearest.

    use super::*;

    #[test]
    fn each_level_is_between_four_thirds_and_twice_the_one_before() {
        for level in 1..LEVELS {
            let (low, high) = (tasks(level - 1), tasks(level));
            assert!(3 * high >= 4 * low && high <= 2 * low, "{low}, {high}");
        }
    }

    #[test]
    fn the_nearest_level_by_ratio() {
        for level in 0..LEVELS {
            assert_eq!(nearest(f64::from(tasks(level))), level);
        }
        assert_eq!((nearest(0.2), nearest(1e9)), (0, LEVELS - 1));
        assert_eq!(tasks(nearest(27.0)), 23);
        assert_eq!(tasks(nearest(27.5)), 32);
    }

    #[test]
    fn ends_and_middle() {
        assert_eq!(tasks(highest(1)), 1);
        assert_eq!(tasks(highest(225)), 256);
        assert_eq!(tasks(highest(1_000_000)), 4096);
        assert_eq!(tasks(middle(225)), 11);
        assert_eq!(tasks(middle(256)), 16);
        assert_eq!((middle(0), middle(1)), (0, 0));
    }
}
