//! A tally: the sums of the meters that ran on a lane, by name.
//!
//! Sums and counts only, so that figures merge exactly; means are made later.

use super::column::{Number, Reading};
use super::{JointRows, LaneEnd, LayerCounts, METERS, MeterEntry, MeterPlan, MeterSite, PageUse};

/// What the meters of one lane counted on one cache, or on several together.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Tally {
    meters: Vec<MeterSums>,
}

/// What one meter counted.
#[derive(Clone, Debug)]
struct MeterSums {
    entry: &'static MeterEntry,
    counted: Counted,
}

/// What a meter has counted.
#[derive(Clone, PartialEq, Debug)]
pub enum Counted {
    /// One value for each of its sums; `None` where there was nothing to count.
    Sums(Vec<Option<Number>>),
    /// The numbers of a [joint](MeterEntry::joint) meter.
    Joint(JointRows),
    /// The pages of a lane's caches.
    Pages(PageUse),
    /// Sums that are made of all caches of a layer at once.
    OfLayers(LayerCounts),
}

impl Counted {
    /// Sums that all were counted.
    pub fn all<const N: usize>(sums: [Number; N]) -> Counted {
        Counted::Sums(sums.map(Some).to_vec())
    }
}

impl PartialEq for MeterSums {
    fn eq(&self, other: &MeterSums) -> bool {
        self.entry.name == other.entry.name && self.counted == other.counted
    }
}

impl Tally {
    /// What meters count where there is no cache: nothing, which is not the same as not counting.
    pub fn of_no_cache(meters: &[MeterPlan]) -> Tally {
        let mut tally = Tally::default();
        for plan in meters {
            let meter = (plan.entry.make)(&plan.setting(MeterSite::default()));
            tally.add(plan.entry, meter.finish(&LaneEnd::new(None)));
        }
        tally
    }

    /// Notes what a meter counted.
    pub(crate) fn add(&mut self, entry: &'static MeterEntry, counted: Counted) {
        self.meters.push(MeterSums { entry, counted });
    }

    /// Puts what was counted elsewhere in the place of what a meter counted.
    pub(crate) fn replace(&mut self, entry: &'static MeterEntry, counted: Counted) {
        if let Some(own) = self.meters.iter_mut().find(|own| own.entry.name == entry.name) {
            own.counted = counted;
        }
    }

    /// Whether no meter ran: the lane keeps no set here.
    pub fn is_empty(&self) -> bool {
        self.meters.is_empty()
    }

    /// The value of a sum; `None` where it was not counted, or no meter with such a sum ran.
    pub fn number(&self, sum: &str) -> Option<Number> {
        self.meters.iter().find_map(|meter| {
            let index = meter.entry.sums.iter().position(|known| known.name == sum)?;
            match (&meter.counted, meter.entry.joint) {
                (Counted::Sums(sums), _) => sums[index],
                (Counted::Pages(pages), _) => pages.sums()[index],
                (Counted::OfLayers(layers), _) => layers.get(index),
                (Counted::Joint(rows), Some(make)) => make(rows)[index],
                (Counted::Joint(_), None) => panic!("meter {:?} is not declared joint", meter.entry.name),
            }
        })
    }

    /// A sum of whole numbers; 0 where it was not counted.
    pub fn count(&self, sum: &str) -> u64 {
        match self.number(sum) {
            Some(Number::Count(count)) => count,
            None => 0,
            Some(Number::Real(_)) => panic!("{sum:?} is not a sum of whole numbers"),
        }
    }

    /// A sum as a float; 0 where it was not counted.
    pub fn real(&self, sum: &str) -> f64 {
        self.number(sum).map_or(0.0, Number::as_f64)
    }

    /// A figure by its name; `None` where a meter that it is read from did not run, or nothing was
    /// counted.
    pub fn figure(&self, name: &str) -> Option<f64> {
        let own = self.meters.iter().map(|meter| meter.entry);
        let mut figures = own.chain(METERS).flat_map(|entry| entry.figures);
        let figure = figures.find(|figure| figure.name == name)?;
        match figure.reading {
            Reading::Value(sum) => self.number(sum).map(Number::as_f64),
            Reading::Ratio(part, whole) => {
                let sums = whole.iter().map(|sum| self.number(sum).map(Number::as_f64));
                let whole: f64 = sums.collect::<Option<Vec<f64>>>()?.into_iter().sum();
                Some(self.number(part)?.as_f64() / whole).filter(|_| whole != 0.0)
            }
        }
    }

    /// The numbers of a joint meter, as they were counted; `None` where it did not run.
    pub fn joint(&self, meter: &str) -> Option<&JointRows> {
        self.meters.iter().find(|own| own.entry.name == meter).and_then(|own| match &own.counted {
            Counted::Joint(rows) => Some(rows),
            Counted::Sums(_) | Counted::Pages(_) | Counted::OfLayers(_) => None,
        })
    }

    /// The meters that ran.
    pub fn meters(&self) -> impl Iterator<Item = &'static MeterEntry> {
        self.meters.iter().map(|meter| meter.entry)
    }

    /// Adds the counts of another cache of the same lane, in the order of caches: sums are summed,
    /// extremes kept, the numbers of joint meters added row by row.
    pub fn merge(&mut self, other: &Tally) {
        for theirs in &other.meters {
            match self.meters.iter_mut().find(|own| own.entry.name == theirs.entry.name) {
                Some(own) => own.merge(theirs),
                None => self.meters.push(theirs.clone()),
            }
        }
    }
}

impl MeterSums {
    fn merge(&mut self, other: &MeterSums) {
        match (&mut self.counted, &other.counted) {
            (Counted::Joint(own), Counted::Joint(theirs)) => own.merge(theirs),
            (Counted::Pages(own), Counted::Pages(theirs)) => own.merge(theirs),
            (Counted::OfLayers(own), Counted::OfLayers(theirs)) => own.merge(theirs, self.entry.sums),
            (Counted::Sums(own), Counted::Sums(theirs)) => {
                for ((sum, own), theirs) in self.entry.sums.iter().zip(own).zip(theirs) {
                    *own = match (*own, *theirs) {
                        (Some(a), Some(b)) => Some(sum.merge.of(a, b)),
                        (one, other) => one.or(other),
                    };
                }
            }
            _ => panic!("meter {:?} counts in one way, never in several", self.entry.name),
        }
    }
}
