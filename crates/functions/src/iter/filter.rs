//! `iter.filter`: one call an element, and the list of those for which it gives true.

use imbl::Vector;
use setpoint_value::{
    CallError, Func, List, Marks, ScopeArgument, ScopeBuilder, Shape, ShapeState, Type, Value,
};

use super::changes::{Known, differing, function, list, unknown_list};

pub(super) struct Filter;

impl Shape for Filter {
    fn start(&self) -> Box<dyn ShapeState> {
        Box::new(Filtering::default())
    }
}

#[derive(Default)]
struct Filtering {
    inputs: Vector<Value>,
    function: Option<Func>,
    element: Option<Type>,
    marks: Marks,
    /// The list or the function is not known.
    unknown: bool,
    /// For each element whether it is in the result.
    kept: Bits,
    output: Vector<Value>,
    /// Elements that are others than at the last result.
    touched: Vec<usize>,
    /// The list made last.
    made: Option<List>,
    /// What `output` has that `made` has not.
    new: Vec<Value>,
    /// Whether `made` is another list than `output` would make.
    is_stale: bool,
    /// Slots whose answer is not known or carries marks; seldom any.
    special: std::collections::BTreeSet<usize>,
}

impl ShapeState for Filtering {
    fn update(&mut self, arguments: &[Value], builder: &mut dyn ScopeBuilder) -> Result<(), CallError> {
        let [inputs, body] = arguments else {
            return Err(CallError::fatal("a list and a function are needed"));
        };
        self.marks = Marks::none();
        let element = inputs.ty().element().cloned();
        if element != self.element {
            self.element = element;
            self.made = None;
        }
        let inputs = list(inputs, &mut self.marks)?;
        let body = function(body, &mut self.marks)?;
        let (Known::Yes(inputs), Known::Yes(body)) = (inputs, body) else {
            self.unknown = true;
            self.function = None;
            self.inputs = Vector::new();
            self.shorten(0);
            builder.truncate(0);
            return Ok(());
        };
        self.unknown = false;
        let items = inputs.items();
        let before = self.inputs.len();
        if items.len() < before {
            builder.truncate(items.len());
            self.shorten(items.len());
        }
        let common = before.min(items.len());
        let same = self.function.as_ref() == Some(body);
        let touched = &mut self.touched;
        let mut call = |index: usize| {
            if let Some(item) = items.get(index) {
                builder.call(index, body, &[ScopeArgument::Value(item.clone())]);
            }
        };
        differing(&self.inputs, items, |index| {
            touched.push(index);
            if same {
                call(index);
            }
        });
        let new_from = if same { common } else { 0 };
        (new_from..items.len()).for_each(&mut call);
        self.touched.extend(common..items.len());
        self.inputs = items.clone();
        self.function = Some(body.clone());
        Ok(())
    }

    fn collect(&mut self, results: &dyn Fn(usize) -> Value, changed: &[usize]) -> Result<Value, CallError> {
        let element = self.element.clone().unwrap_or(Type::Dynamic);
        if self.unknown {
            return Ok(unknown_list(element, None).with_marks(&self.marks));
        }
        let touched = std::mem::take(&mut self.touched);
        // New elements come in order, so that each finds those before it in place.
        let mut slots: Vec<usize> = touched.iter().chain(changed).copied().collect();
        slots.sort_unstable();
        slots.dedup();
        for slot in slots {
            self.decide(slot, &results(slot))?;
        }
        let mut marks = self.marks.clone();
        let mut unknown = false;
        for slot in &self.special {
            let answer = results(*slot);
            marks.union(&answer.unmark().1);
            unknown |= answer.is_unknown();
        }
        if unknown {
            return Ok(unknown_list(element, Some(self.inputs.len())).with_marks(&marks));
        }
        let new = std::mem::take(&mut self.new);
        let made = match self.made.take() {
            Some(made) if !self.is_stale => made,
            Some(made) => made.with_vector(self.output.clone(), &new.iter().collect::<Vec<_>>()),
            None => List::from_vector(element, self.output.clone()),
        };
        self.is_stale = false;
        self.made = Some(made.clone());
        Ok(Value::List(made).with_marks(&marks))
    }
}

impl Filtering {
    /// Takes in the answer for an element.
    fn decide(&mut self, slot: usize, answer: &Value) -> Result<(), CallError> {
        let Some(item) = self.inputs.get(slot) else {
            return Ok(());
        };
        if matches!(answer, Value::Marked(_)) || answer.is_unknown() {
            self.special.insert(slot);
        } else {
            self.special.remove(&slot);
        }
        let keep = match answer.unmarked() {
            Value::Bool(keep) => *keep,
            Value::Unknown(_) => false,
            other => return Err(CallError::fatal(format!("{} is not bool", other.ty()))),
        };
        let place = self.kept.count_below(slot);
        match (self.kept.get(slot), keep) {
            (true, true) => {
                if self.output.get(place) != Some(item) {
                    self.output.set(place, item.clone());
                    self.new.push(item.clone());
                    self.is_stale = true;
                }
            }
            (false, true) => {
                self.output.insert(place, item.clone());
                self.new.push(item.clone());
                self.is_stale = true;
            }
            (true, false) => {
                self.output.remove(place);
                self.is_stale = true;
            }
            (false, false) => {}
        }
        self.kept.set(slot, keep);
        Ok(())
    }

    /// Forgets the elements from `length` on.
    fn shorten(&mut self, length: usize) {
        let kept = self.kept.count_below(length);
        if kept < self.output.len() {
            self.output.truncate(kept);
            self.is_stale = true;
        }
        self.kept.truncate(length);
        self.touched.retain(|index| *index < length);
        self.special.retain(|index| *index < length);
    }
}

/// A row of bits whose set ones can be counted quickly.
#[derive(Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn get(&self, index: usize) -> bool {
        self.0
            .get(index / 64)
            .is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    fn set(&mut self, index: usize, bit: bool) {
        if self.0.len() <= index / 64 {
            self.0.resize(index / 64 + 1, 0);
        }
        let mask = 1u64 << (index % 64);
        if bit {
            self.0[index / 64] |= mask;
        } else {
            self.0[index / 64] &= !mask;
        }
    }

    /// How many bits before `index` are set.
    fn count_below(&self, index: usize) -> usize {
        let whole = (index / 64).min(self.0.len());
        let full: usize = self.0[..whole].iter().map(|w| w.count_ones() as usize).sum();
        let rest = self
            .0
            .get(index / 64)
            .map_or(0, |word| word & ((1u64 << (index % 64)) - 1));
        full + rest.count_ones() as usize
    }

    fn truncate(&mut self, length: usize) {
        self.0.truncate(length.div_ceil(64));
        if !length.is_multiple_of(64)
            && let Some(last) = self.0.get_mut(length / 64)
        {
            *last &= (1u64 << (length % 64)) - 1;
        }
    }
}
