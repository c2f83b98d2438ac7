//! Cells: the variables, attributes, relation ends and intermediate results of a running model.
//!
//! A cell is given a value once. Cells lie in one vector, those of an instance, of a block or of one expression side by side, and are named by
//! number; who waits for a cell is a chain of links in another vector. Relations that hold a list or nothing have a [`Gradual`] besides: they
//! have a value when they are frozen.
//!
//! There are more cells than of anything else, so they are small: a place is a number, and whether there is a value is a bit of the owner.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_cf_names::datum::{Datum, InstanceId, UnknownId};
use setpoint_diagnostics::Span;

use super::blocks::Blocks;
use super::units::UnitId;

/// No cell, unit, link, frame or instance.
pub(super) const NONE: u32 = u32::MAX;

/// The number of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CellId(pub u32);

impl CellId {
    /// No cell.
    pub(super) const NONE: CellId = CellId(NONE);

    /// No cell, for who counts on from it and never does.
    pub(super) fn none() -> CellId {
        CellId::NONE
    }

    pub(super) fn is_none(self) -> bool {
        self.0 == NONE
    }

    /// The cell that lies so many places behind this one.
    pub(super) fn at(self, offset: u32) -> CellId {
        CellId(self.0 + offset)
    }
}

/// A variable that is given a value once.
#[derive(Debug)]
pub(super) struct Cell {
    /// Its value; null as long as it has none.
    pub(super) value: Datum,
    /// The number of what gave it its value.
    place: u32,
    /// The instance whose attribute or relation it is, and whether it has a value.
    owner: u32,
    /// Its number among the graduals, if it is one.
    pub(super) gradual: u32,
    waiters: Chain,
}

impl Cell {
    /// The bit of a cell that has a value.
    const SET: u32 = 1 << 31;

    fn new(owner: u32) -> Cell {
        Cell {
            value: Datum::Null,
            place: NONE,
            owner: owner & !Cell::SET,
            gradual: NONE,
            waiters: Chain::EMPTY,
        }
    }

    /// Whether it has a value.
    pub(super) fn is_set(&self) -> bool {
        self.owner & Cell::SET != 0
    }

    /// Gives it a value.
    pub(super) fn set(&mut self, value: Datum) {
        self.value = value;
        self.owner |= Cell::SET;
    }

    /// The instance whose attribute or relation it is; one that there is not if it is none.
    pub(super) fn owner(&self) -> u32 {
        self.owner & !Cell::SET
    }
}

/// A queue of links: the last, whose next one is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chain(u32);

impl Chain {
    const EMPTY: Chain = Chain(NONE);
}

#[derive(Debug, Clone, Copy)]
struct Link {
    unit: UnitId,
    next: u32,
    /// Whether the unit waits for completeness only, because a listener tells it the elements.
    listens: bool,
}

/// What an element of a relation is: an instance or an unknown, in one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Element(u32);

impl Element {
    const UNKNOWN: u32 = 1 << 31;

    pub(super) fn instance(id: InstanceId) -> Element {
        Element(id.0)
    }

    pub(super) fn unknown(id: UnknownId) -> Element {
        Element(id.0 | Element::UNKNOWN)
    }

    pub(super) fn is_known(self) -> bool {
        self.0 & Element::UNKNOWN == 0
    }

    pub(super) fn datum(self) -> Datum {
        if self.is_known() {
            Datum::Instance(InstanceId(self.0))
        } else {
            Datum::Unknown(UnknownId(self.0 & !Element::UNKNOWN))
        }
    }
}

/// What a gradual cell is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GradualKind {
    /// A relation that holds a list.
    List,
    /// A relation that holds one instance or none.
    Optional,
    /// An attribute that becomes null if nobody says anything.
    OptionalAttribute,
}

/// What a cell needs besides that is complete only when it is frozen.
#[derive(Debug)]
pub(super) struct Gradual {
    /// The cell.
    pub(super) cell: CellId,
    /// What it is of.
    pub(super) kind: GradualKind,
    /// What it holds so far, if it is a list and not empty.
    elements: Option<Box<Elements>>,
    /// Promises that were made and not kept yet.
    pub(super) providers: u32,
    /// Waiters that need it to be frozen.
    pub(super) waiters: u32,
    /// Where it stands in the order of freezing: the rank of its relation.
    pub(super) rank: u32,
    /// One more where it is the first relation of a rule of precedence.
    pub(super) bonus: u32,
    /// When it was parked; [`NONE`] if it is not.
    pub(super) parked: u32,
    /// Whether nothing may change any more.
    pub(super) is_frozen: bool,
    /// Whether it is in the queue of those that may be frozen, or parked.
    pub(super) is_queued: bool,
    /// Whether it holds enough, but is promised more.
    pub(super) is_self_promised: bool,
    listeners: Chain,
}

/// What a relation holds.
#[derive(Debug, Default)]
struct Elements {
    list: Vec<Element>,
    /// The same for quick answers, once there are many.
    known: Option<FxHashSet<Element>>,
}

/// From this many elements on a relation keeps a set of them.
const MANY: usize = 12;

impl Gradual {
    /// How much there is to gain by freezing it.
    pub(super) fn potential(&self) -> u32 {
        self.waiters + self.bonus
    }

    /// What it holds so far, if it is a list.
    pub(super) fn elements(&self) -> &[Element] {
        self.elements.as_ref().map_or(&[], |elements| &elements.list)
    }

    /// Whether it holds an element.
    pub(super) fn contains(&self, element: Element) -> bool {
        match &self.elements {
            None => false,
            Some(elements) => match &elements.known {
                Some(known) => known.contains(&element),
                None => elements.list.contains(&element),
            },
        }
    }

    /// Adds an element that it does not hold.
    pub(super) fn push(&mut self, element: Element) {
        let elements = self.elements.get_or_insert_default();
        elements.list.push(element);
        match &mut elements.known {
            Some(known) => {
                known.insert(element);
            }
            None if elements.list.len() >= MANY => {
                elements.known = Some(elements.list.iter().copied().collect());
            }
            None => {}
        }
    }
}

/// All cells.
#[derive(Debug)]
pub(super) struct Cells {
    pub(super) cells: Blocks<Cell>,
    pub(super) graduals: Blocks<Gradual>,
    links: Blocks<Link>,
    free_link: u32,
    places: Places,
    /// The value of all relations that hold nothing.
    nothing: Arc<[Datum]>,
    /// Cells of finished expressions, by how many lie side by side.
    free: [Vec<CellId>; Cells::SIDE_BY_SIDE],
}

impl Cells {
    const SIDE_BY_SIDE: usize = 4;

    pub(super) fn new() -> Cells {
        Cells {
            cells: Blocks::new(),
            graduals: Blocks::new(),
            links: Blocks::new(),
            free_link: NONE,
            places: Places::default(),
            nothing: Arc::new([]),
            free: std::array::from_fn(|_| Vec::new()),
        }
    }

    /// New cells, side by side, that stay.
    pub(super) fn add(&mut self, count: usize, owner: u32) -> CellId {
        let first = CellId(self.cells.len() as u32);
        self.cells.extend((0..count).map(|_| Cell::new(owner)));
        first
    }

    /// Makes a cell one that is frozen.
    pub(super) fn make_gradual(&mut self, cell: CellId, kind: GradualKind, rank: u32, bonus: u32) -> u32 {
        let number = self.graduals.len() as u32;
        self.cells[cell.0 as usize].gradual = number;
        self.graduals.push(Gradual {
            cell,
            kind,
            elements: None,
            providers: 0,
            waiters: 0,
            rank,
            bonus,
            parked: NONE,
            is_frozen: false,
            is_queued: false,
            is_self_promised: false,
            listeners: Chain::EMPTY,
        });
        number
    }

    /// Cells for the results of the parts of an expression.
    pub(super) fn borrow(&mut self, count: u32) -> CellId {
        match count {
            0 => CellId::NONE,
            count if count as usize <= Cells::SIDE_BY_SIDE => {
                let free = self.free[count as usize - 1].pop();
                free.unwrap_or_else(|| self.add(count as usize, NONE))
            }
            count => self.add(count as usize, NONE),
        }
    }

    /// Takes them back.
    pub(super) fn give_back(&mut self, first: CellId, count: u32) {
        for offset in 0..count {
            let cell = &mut self.cells[first.at(offset).0 as usize];
            // What waits for a cell has run when the expression that the cell belongs to is finished.
            *cell = Cell::new(NONE);
        }
        if count > 0 && count as usize <= Cells::SIDE_BY_SIDE {
            self.free[count as usize - 1].push(first);
        }
    }

    pub(super) fn get(&self, cell: CellId) -> &Cell {
        &self.cells[cell.0 as usize]
    }

    pub(super) fn get_mut(&mut self, cell: CellId) -> &mut Cell {
        &mut self.cells[cell.0 as usize]
    }

    /// What a cell needs besides if it is frozen.
    pub(super) fn gradual(&self, cell: CellId) -> Option<&Gradual> {
        self.graduals.get(self.get(cell).gradual as usize)
    }

    pub(super) fn gradual_mut(&mut self, cell: CellId) -> Option<&mut Gradual> {
        let number = self.get(cell).gradual;
        self.graduals.get_mut(number as usize)
    }

    /// Gives a cell a value, at a place.
    pub(super) fn set(&mut self, cell: CellId, value: Datum, place: Span) {
        self.get_mut(cell).set(value);
        self.set_place(cell, place);
    }

    /// What gave a cell its value.
    pub(super) fn place(&self, cell: CellId) -> Option<Span> {
        self.places.all.get(self.get(cell).place as usize).copied()
    }

    /// Notes what gave a cell its value.
    pub(super) fn set_place(&mut self, cell: CellId, place: Span) {
        self.cells[cell.0 as usize].place = self.places.number(place);
    }

    /// What a list relation holds, as its value.
    pub(super) fn list(&self, gradual: &Gradual) -> Datum {
        Datum::List(match gradual.elements() {
            [] => self.nothing.clone(),
            elements => elements.iter().map(|element| element.datum()).collect(),
        })
    }

    /// Whether it has its final value, which may be that there is none.
    pub(super) fn is_ready(&self, cell: CellId) -> bool {
        match self.gradual(cell) {
            Some(gradual) => gradual.is_frozen,
            None => self.get(cell).is_set(),
        }
    }

    fn new_link(&mut self, link: Link) -> u32 {
        if self.free_link == NONE {
            self.links.push(link);
            return self.links.len() as u32 - 1;
        }
        let number = self.free_link;
        self.free_link = std::mem::replace(&mut self.links[number as usize], link).next;
        number
    }

    fn append(&mut self, chain: Chain, unit: UnitId, listens: bool) -> Chain {
        let next = NONE;
        let link = self.new_link(Link { unit, next, listens });
        let before = match chain {
            Chain::EMPTY => link,
            Chain(last) => std::mem::replace(&mut self.links[last as usize].next, link),
        };
        self.links[link as usize].next = before;
        Chain(link)
    }

    /// A unit is told when the cell is ready. One that listens needs nothing to be frozen.
    pub(super) fn attach(&mut self, cell: CellId, unit: UnitId, listens: bool) {
        let chain = self.append(self.get(cell).waiters, unit, listens);
        self.get_mut(cell).waiters = chain;
        if !listens && let Some(gradual) = self.gradual_mut(cell) {
            gradual.waiters += 1;
        }
    }

    /// A unit is told elements as they come.
    pub(super) fn listen(&mut self, cell: CellId, unit: UnitId) {
        let Some(gradual) = self.gradual(cell) else { return };
        let chain = self.append(gradual.listeners, unit, true);
        if let Some(gradual) = self.gradual_mut(cell) {
            gradual.listeners = chain;
        }
    }

    /// The units of a chain, first to last, whose links are given back.
    fn drain(&mut self, chain: Chain, mut each: impl FnMut(UnitId)) {
        let Chain(last) = chain;
        if last == NONE {
            return;
        }
        let mut at = self.links[last as usize].next;
        loop {
            let link = &mut self.links[at as usize];
            each(link.unit);
            let next = std::mem::replace(&mut link.next, self.free_link);
            self.free_link = at;
            if at == last {
                return;
            }
            at = next;
        }
    }

    /// Takes all that wait for a cell away from it, and the listeners.
    pub(super) fn take_waiters(&mut self, cell: CellId, each: impl FnMut(UnitId)) {
        let waiters = std::mem::replace(&mut self.get_mut(cell).waiters, Chain::EMPTY);
        self.drain(waiters, each);
        if let Some(gradual) = self.gradual_mut(cell) {
            gradual.waiters = 0;
            let listeners = std::mem::replace(&mut gradual.listeners, Chain::EMPTY);
            self.drain(listeners, |_| {});
        }
    }

    /// Who waits until a cell is frozen.
    pub(super) fn waiters(&self, cell: CellId) -> impl Iterator<Item = UnitId> + '_ {
        self.walk(self.get(cell).waiters)
            .filter(|link| !link.listens)
            .map(|link| link.unit)
    }

    /// Who is told elements; those who came while this runs are not among them.
    pub(super) fn listeners(&self, cell: CellId) -> smallvec::SmallVec<[UnitId; 4]> {
        match self.gradual(cell) {
            Some(gradual) => self.walk(gradual.listeners).map(|link| link.unit).collect(),
            None => smallvec::SmallVec::new(),
        }
    }

    fn walk(&self, chain: Chain) -> impl Iterator<Item = Link> + '_ {
        let Chain(last) = chain;
        let mut at = self.links.get(last as usize).map_or(NONE, |link| link.next);
        std::iter::from_fn(move || {
            let link = *self.links.get(at as usize)?;
            at = if at == last { NONE } else { link.next };
            Some(link)
        })
    }
}

/// The places where cells are given values, each once: they are parts of the text, and there are few.
#[derive(Debug, Default)]
struct Places {
    all: Vec<Span>,
    numbers: FxHashMap<Span, u32>,
    /// The one that was asked for last.
    last: Option<(Span, u32)>,
}

impl Places {
    fn number(&mut self, place: Span) -> u32 {
        if let Some((last, number)) = self.last
            && last == place
        {
            return number;
        }
        let number = *self.numbers.entry(place).or_insert_with(|| {
            self.all.push(place);
            self.all.len() as u32 - 1
        });
        self.last = Some((place, number));
        number
    }
}
