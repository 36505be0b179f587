//! Which constraint a number of ready tasks gets (Elshazly, thesis, sections 4.3.3.2, 4.4.3.3).

use super::words::Entry;

/// The time that `tasks` take under a constraint: as many groups as there are, each of as many
/// tasks as run at once, for the mean time each. A remainder is a group of its own.
pub(crate) fn estimate_ns(tasks: u64, entry: &Entry, layers: u32) -> u128 {
    let at_once = u64::from(entry.most) * u64::from(layers.max(1));
    u128::from(tasks.div_ceil(at_once.max(1))) * u128::from(entry.mean_ns)
}

/// The constraint with the least estimate; of equals the highest, which congests least.
/// `layers`: on how many layers alike the tasks are spread.
pub(crate) fn choose(tasks: u64, entries: &[Entry], layers: u32) -> Option<u64> {
    let least = entries.iter().min_by_key(|entry| {
        (estimate_ns(tasks, entry, layers), core::cmp::Reverse(entry.constraint))
    });
    least.map(|entry| entry.constraint)
}

#[cfg(test)]
mod tests {
    //! Examples that can be done by hand.

    use super::*;

    fn entry(constraint: u64, most: u32, mean_ns: u64) -> Entry {
        Entry { constraint, most, tasks: most, mean_ns, bytes: 0 }
    }

    #[test]
    fn a_remainder_is_a_group_of_its_own() {
        let ten_at_once = entry(10, 10, 7);
        assert_eq!(estimate_ns(0, &ten_at_once, 1), 0);
        assert_eq!(estimate_ns(20, &ten_at_once, 1), 14);
        assert_eq!(estimate_ns(21, &ten_at_once, 1), 21);
        assert_eq!(estimate_ns(21, &ten_at_once, 2), 14, "two layers take twenty at once");
    }

    #[test]
    fn the_least_time_wins_and_depends_on_how_many_wait() {
        let entries = [entry(2, 225, 400), entry(4, 112, 180), entry(8, 56, 70), entry(16, 28, 40)];
        assert_eq!(choose(1000, &entries, 1), Some(8), "18 x 70 against 9 x 180 and 36 x 40");
        assert_eq!(choose(28, &entries, 1), Some(16), "one group at each: the shortest");
        assert_eq!(choose(29, &entries, 1), Some(8), "two groups of 40 are longer than one of 70");
        assert_eq!(choose(5, &[], 1), None);
    }

    #[test]
    fn of_equals_the_highest_constraint() {
        let entries = [entry(2, 20, 80), entry(4, 10, 40), entry(8, 5, 20)];
        assert_eq!(choose(20, &entries, 1), Some(8));
        assert_eq!(choose(15, &entries, 1), Some(8), "60 against 80 and 80");
        assert_eq!(choose(11, &entries, 1), Some(8), "60 against 80 and 80");
        let entries = [entry(2, 20, 80), entry(4, 10, 40), entry(8, 5, 25)];
        assert_eq!(choose(20, &entries, 1), Some(4), "80 and 80 tie below 100");
    }
}
