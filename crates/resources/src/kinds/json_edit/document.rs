//! A JSON document that keeps its own layout: what is not edited is written as it was read, byte by byte.
//!
//! Objects are taken apart, as edits walk through them; everything else is kept as text. What is new follows the indentation that the document has.

use serde::de::IgnoredAny;

/// A document: one object, and what is around it.
#[derive(Debug, Clone)]
pub(super) struct Document {
    before: String,
    pub(super) root: Object,
    after: String,
    style: Style,
}

/// How new lines are indented; none in a document that is written in one line.
#[derive(Debug, Clone)]
struct Style {
    unit: Option<String>,
    /// What stands between a name and its value.
    colon: String,
    /// The end of a line.
    end: &'static str,
}

/// A value.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Object(Object),
    /// An array, or a single value, as it is written.
    Text(String),
}

/// An object, in the order in which it is written.
#[derive(Debug, Clone, Default)]
pub(super) struct Object {
    members: Vec<Member>,
    /// What stands before the closing brace.
    end: String,
}

#[derive(Debug, Clone)]
struct Member {
    /// White space before the name.
    lead: String,
    /// The name, as it is written.
    written: String,
    name: String,
    /// From the name to the value.
    colon: String,
    value: Node,
    /// White space after the value.
    tail: String,
}

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    /// Where it is no JSON, in words, or is no object.
    pub(super) fn read(text: &str) -> Result<Document, String> {
        // Whatever follows may rely on it being right, and on a bounded depth.
        serde_json::from_str::<IgnoredAny>(text).map_err(|error| format!("it is not valid JSON: {error}"))?;
        let mut reader = Reader { text, at: 0 };
        let before = reader.space();
        let root = match reader.node() {
            Node::Object(root) => root,
            Node::Text(_) => return Err("it is not a JSON object".to_owned()),
        };
        let after = reader.space();
        let style = Style::of(&root);
        Ok(Document {
            before,
            root,
            after,
            style,
        })
    }

    /// A document with nothing in it.
    pub(super) fn empty() -> Document {
        Document {
            before: String::new(),
            root: Object::default(),
            after: "\n".to_owned(),
            style: Style::of(&Object::default()),
        }
    }

    /// It as text.
    pub(super) fn text(&self) -> String {
        let mut text = self.before.clone();
        self.root.write(&mut text);
        text + &self.after
    }

    /// Sets the value at a path of names, and makes the objects on the way. Answers what was there, if that is another value.
    ///
    /// # Errors
    /// The part of the path at which there is something else than an object.
    pub(super) fn set(&mut self, path: &[String], value: &Node) -> Result<Option<Before>, usize> {
        let Some((last, above)) = path.split_last() else {
            return Ok(None);
        };
        let mut object = &mut self.root;
        for (depth, name) in above.iter().enumerate() {
            let place = match object.place(name) {
                Some(place) => place,
                None => object.insert(name, Node::Object(Object::default()), depth, &self.style),
            };
            match &mut object.members[place].value {
                Node::Object(next) => object = next,
                Node::Text(_) => return Err(depth + 1),
            }
        }
        match object.place(last) {
            Some(place) => {
                let there = &mut object.members[place].value;
                if there.is_same(value) {
                    return Ok(None);
                }
                let before = there.compact();
                *there = value.laid_out(above.len() + 1, &self.style);
                Ok(Some(Before(Some(before))))
            }
            None => {
                let value = value.laid_out(above.len() + 1, &self.style);
                object.insert(last, value, above.len(), &self.style);
                Ok(Some(Before(None)))
            }
        }
    }

    /// Removes what is at a path of names. Answers what was there, if anything was.
    ///
    /// # Errors
    /// The part of the path at which there is something else than an object.
    pub(super) fn remove(&mut self, path: &[String]) -> Result<Option<Before>, usize> {
        let Some((last, above)) = path.split_last() else {
            return Ok(None);
        };
        let mut object = &mut self.root;
        for (depth, name) in above.iter().enumerate() {
            let Some(place) = object.place(name) else {
                return Ok(None);
            };
            match &mut object.members[place].value {
                Node::Object(next) => object = next,
                Node::Text(_) => return Err(depth + 1),
            }
        }
        let Some(place) = object.place(last) else {
            return Ok(None);
        };
        let before = object.members[place].value.compact();
        // All of that name: with the last gone, one before it would count.
        object.members.retain(|member| member.name != *last);
        if object.members.is_empty() {
            object.end.clear();
        }
        Ok(Some(Before(Some(before))))
    }
}

/// What was at a path before an edit: its text, or nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Before(pub(super) Option<String>);

impl Node {
    /// Reads one value.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(super) fn read(text: &str) -> Result<Node, String> {
        serde_json::from_str::<IgnoredAny>(text).map_err(|error| error.to_string())?;
        let mut reader = Reader { text, at: 0 };
        reader.space();
        Ok(reader.node())
    }

    /// Whether both are the same value: objects whatever their order and layout, numbers as they are written.
    fn is_same(&self, other: &Node) -> bool {
        match (self, other) {
            (Node::Object(a), Node::Object(b)) => {
                let names = |object: &Object| {
                    let mut names: Vec<String> = object.members.iter().map(|m| m.name.clone()).collect();
                    names.sort();
                    names.dedup();
                    names
                };
                let value = |object: &Object, name: &str| {
                    let place = object.place(name)?;
                    Some(object.members[place].value.clone())
                };
                let (mine, theirs) = (names(a), names(b));
                let same = |name: &String| match (value(a, name), value(b, name)) {
                    (Some(a), Some(b)) => a.is_same(&b),
                    _ => false,
                };
                mine == theirs && mine.iter().all(same)
            }
            (Node::Text(a), Node::Text(b)) => same_text(a, b),
            _ => false,
        }
    }

    /// It in one line, as messages show it.
    pub(super) fn compact(&self) -> String {
        match self {
            Node::Text(text) => text.clone(),
            Node::Object(object) => {
                let members: Vec<String> = object
                    .members
                    .iter()
                    .map(|member| format!("{}: {}", member.written, member.value.compact()))
                    .collect();
                format!("{{{}}}", members.join(", "))
            }
        }
    }

    /// A new value, indented as the document is.
    fn laid_out(&self, depth: usize, style: &Style) -> Node {
        let Node::Object(object) = self else {
            return self.clone();
        };
        let mut laid_out = Object::default();
        for (place, member) in object.members.iter().enumerate() {
            // Of two with one name the last counts.
            if object.place(&member.name) == Some(place) {
                let value = member.value.laid_out(depth + 1, style);
                laid_out.insert(&member.name, value, depth, style);
            }
        }
        Node::Object(laid_out)
    }

    fn write(&self, text: &mut String) {
        match self {
            Node::Object(object) => object.write(text),
            Node::Text(own) => text.push_str(own),
        }
    }
}

/// Whether two values that are no objects are the same: in arrays may be objects, and texts can be written in several ways.
fn same_text(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    let parts = |text: &str| {
        let mut reader = Reader { text, at: 0 };
        reader.elements()
    };
    match (a.as_bytes().first(), b.as_bytes().first()) {
        (Some(b'['), Some(b'[')) => {
            let (a, b) = (parts(a), parts(b));
            a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.is_same(b))
        }
        (Some(b'"'), Some(b'"')) => text_of(a) == text_of(b),
        _ => false,
    }
}

/// The text that a JSON string stands for.
fn text_of(written: &str) -> String {
    // It was read as JSON before; what is no text in spite of that (half of a pair of surrogates) stands for itself.
    serde_json::from_str(written).unwrap_or_else(|_| written.to_owned())
}

impl Object {
    /// Where the member of a name is. Of several the last counts.
    fn place(&self, name: &str) -> Option<usize> {
        self.members.iter().rposition(|member| member.name == name)
    }

    /// Adds a member at the end. `depth` is that of the object.
    fn insert(&mut self, name: &str, value: Node, depth: usize, style: &Style) -> usize {
        let is_first = self.members.is_empty();
        let lead = match (&style.unit, self.members.last()) {
            (_, Some(last)) if self.members.len() > 1 || last.lead.contains('\n') => last.lead.clone(),
            (Some(unit), _) => format!("{}{}", style.end, unit.repeat(depth + 1)),
            (None, None) => String::new(),
            (None, Some(_)) => " ".to_owned(),
        };
        if is_first {
            self.end = match &style.unit {
                Some(unit) => format!("{}{}", style.end, unit.repeat(depth)),
                None => String::new(),
            };
        }
        // What stood before the closing brace stays there.
        if let Some(last) = self.members.last_mut() {
            let tail = std::mem::take(&mut last.tail);
            if self.end.is_empty() {
                self.end = tail;
            }
        }
        self.members.push(Member {
            lead,
            written: serde_json::Value::from(name).to_string(),
            name: name.to_owned(),
            colon: style.colon.clone(),
            value,
            tail: String::new(),
        });
        self.members.len() - 1
    }

    fn write(&self, text: &mut String) {
        text.push('{');
        for (place, member) in self.members.iter().enumerate() {
            if place > 0 {
                text.push(',');
            }
            text.push_str(&member.lead);
            text.push_str(&member.written);
            text.push_str(&member.colon);
            member.value.write(text);
            text.push_str(&member.tail);
        }
        text.push_str(&self.end);
        text.push('}');
    }
}

impl Style {
    /// The style of a document with this root; tabs where nothing shows one.
    fn of(root: &Object) -> Style {
        let first = root.members.first();
        let unit = match first {
            None => Some("\t".to_owned()),
            Some(first) => first.lead.rsplit_once('\n').map(|(_, unit)| unit.to_owned()),
        };
        let colon = first.map_or_else(|| ": ".to_owned(), |first| first.colon.clone());
        let has_carriage_returns = first.is_some_and(|first| first.lead.contains("\r\n"));
        let end = if has_carriage_returns { "\r\n" } else { "\n" };
        Style { unit, colon, end }
    }
}

/// Takes apart what is known to be JSON.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) -> String {
        let rest = self.rest();
        let length = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
        let space = rest[..length].to_owned();
        self.at += length;
        space
    }

    /// Takes a sign that must be there.
    fn sign(&mut self) {
        self.at += 1;
    }

    fn node(&mut self) -> Node {
        if self.next() == Some(b'{') {
            return Node::Object(self.object());
        }
        let from = self.at;
        self.skip();
        Node::Text(self.text[from..self.at].to_owned())
    }

    fn object(&mut self) -> Object {
        let mut object = Object::default();
        self.sign();
        loop {
            let lead = self.space();
            if self.next() != Some(b'"') {
                // The end of an object without members; JSON has no comma before it.
                object.end = lead;
                self.sign();
                return object;
            }
            let from = self.at;
            self.skip();
            let written = self.text[from..self.at].to_owned();
            let mut colon = self.space();
            self.sign();
            colon.push(':');
            colon.push_str(&self.space());
            let value = self.node();
            let tail = self.space();
            let name = text_of(&written);
            object.members.push(Member {
                lead,
                written,
                name,
                colon,
                value,
                tail,
            });
            let is_last = self.next() != Some(b',');
            self.sign();
            if is_last {
                if let Some(last) = object.members.last_mut() {
                    object.end = std::mem::take(&mut last.tail);
                }
                return object;
            }
        }
    }

    /// The elements of an array.
    fn elements(&mut self) -> Vec<Node> {
        let mut elements = Vec::new();
        self.sign();
        loop {
            self.space();
            match self.next() {
                None | Some(b']') => return elements,
                Some(b',') => self.sign(),
                Some(_) => elements.push(self.node()),
            }
        }
    }

    /// Skips a value that is not taken apart.
    fn skip(&mut self) {
        let mut depth = 0_usize;
        loop {
            match self.next() {
                None => return,
                Some(b'"') => {
                    self.sign();
                    while let Some(byte) = self.next().filter(|byte| *byte != b'"') {
                        self.at += if byte == b'\\' { 2 } else { 1 };
                    }
                    self.sign();
                }
                Some(b'[' | b'{') => {
                    depth += 1;
                    self.sign();
                }
                Some(b']' | b'}') if depth == 0 => return,
                Some(b']' | b'}') => {
                    depth -= 1;
                    self.sign();
                }
                Some(b',' | b' ' | b'\t' | b'\r' | b'\n') if depth == 0 => return,
                Some(_) => {
                    self.sign();
                    if depth > 0 {
                        continue;
                    }
                    // A number or a word: up to what cannot be part of it.
                    while self.next().is_some_and(|byte| !b",]} \t\r\n".contains(&byte)) {
                        self.sign();
                    }
                }
            }
            if depth == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split('.').map(str::to_owned).collect()
    }

    fn set(text: &str, at: &str, value: &str) -> String {
        let mut document = Document::read(text).unwrap();
        let changed = document.set(&path(at), &Node::read(value).unwrap()).unwrap();
        assert_eq!(
            changed.is_none(),
            document.text() == text,
            "it says whether it changed something"
        );
        document.text()
    }

    #[test]
    fn what_is_not_edited_stays_as_it_is() {
        let text = "{\n  \"b\" : [1,  2, {\"x\": 1e5}],\n  \"a\":\t\"\\u00e9\"\n}";
        assert_eq!(set(text, "b", "[1,2,{\"x\":1e5}]"), text);
        assert_eq!(set(text, "a", "\"é\""), text);
        assert_eq!(
            set(text, "a", "1.0"),
            "{\n  \"b\" : [1,  2, {\"x\": 1e5}],\n  \"a\":\t1.0\n}"
        );
        assert_eq!(
            set(text, "c.d", "{\"e\": [1]}"),
            "{\n  \"b\" : [1,  2, {\"x\": 1e5}],\n  \"a\":\t\"\\u00e9\",\n  \"c\" : {\n    \"d\" : {\n      \"e\" : [1]\n    }\n  }\n}"
        );
    }

    #[test]
    fn what_is_new_follows_the_documents_style() {
        assert_eq!(set("{}", "a", "1"), "{\n\t\"a\": 1\n}");
        assert_eq!(set("{\"a\":1}\n", "b", "2"), "{\"a\":1, \"b\":2}\n");
        let carriage = set("{\r\n  \"a\": 1\r\n}\r\n", "b.c", "[1]");
        assert_eq!(
            carriage,
            "{\r\n  \"a\": 1,\r\n  \"b\": {\r\n    \"c\": [1]\r\n  }\r\n}\r\n"
        );
        assert_eq!(
            set("{\"a\":1,\"b\":2}", "c", "{\"x\": 1, \"y\": 2}"),
            "{\"a\":1,\"b\":2,\"c\":{\"x\":1, \"y\":2}}"
        );
        assert_eq!(set("{ \"a\": 1 }", "b", "2"), "{ \"a\": 1, \"b\": 2 }");
        assert_eq!(
            set("{\n\t\"a\": {}\n}\n", "a.b", "null"),
            "{\n\t\"a\": {\n\t\t\"b\": null\n\t}\n}\n"
        );
    }

    #[test]
    fn what_goes_leaves_no_trace() {
        let remove = |text: &str, at: &str| {
            let mut document = Document::read(text).unwrap();
            document.remove(&path(at)).unwrap();
            document.text()
        };
        let text = "{\n  \"a\": 1,\n  \"b\": 2\n}\n";
        assert_eq!(remove(text, "a"), "{\n  \"b\": 2\n}\n");
        assert_eq!(remove(text, "b"), "{\n  \"a\": 1\n}\n");
        assert_eq!(remove(text, "c.d"), text);
        assert_eq!(remove("{\n  \"a\": 1\n}", "a"), "{}");
        assert_eq!(remove("{\"a\": 1, \"b\": 2, \"a\": 3}", "a"), "{ \"b\": 2}");
    }

    #[test]
    fn of_two_with_one_name_the_last_counts() {
        let text = "{\"a\": 1, \"a\": 2}";
        assert_eq!(set(text, "a", "2"), text);
        assert_eq!(set(text, "a", "1"), "{\"a\": 1, \"a\": 1}");
    }

    #[test]
    fn what_is_no_object_is_in_the_way() {
        let mut document = Document::read("{\"a\": {\"b\": [1]}}").unwrap();
        let value = Node::read("1").unwrap();
        assert_eq!(document.set(&path("a.b.c"), &value), Err(2));
        assert_eq!(document.remove(&path("a.b.c")), Err(2));
        assert!(Document::read("[1]").unwrap_err().contains("not a JSON object"));
        assert!(
            Document::read("{\"a\": 1,}")
                .unwrap_err()
                .contains("line 1 column 9")
        );
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i32>().prop_map(Into::into),
            ".{0,6}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Whatever is set or removed in whatever document: it holds what a naive edit of the values gives, and reading changes nothing.
        #[test]
        fn edits_are_those_of_the_values(
            root in prop::collection::btree_map("[a-c]", json(), 0..4),
            at in prop::collection::vec("[a-c]", 1..4),
            value in json(),
            pretty in any::<bool>(),
            removes in any::<bool>(),
        ) {
            let root = serde_json::Value::Object(root.into_iter().collect());
            let text = match pretty {
                true => serde_json::to_string_pretty(&root).unwrap(),
                false => root.to_string(),
            };
            let mut document = Document::read(&text).unwrap();
            prop_assert_eq!(document.text(), text.clone());
            let mut naive = root;
            let mut object = naive.as_object_mut();
            let (last, above) = at.split_last().unwrap();
            for name in above {
                object = match object {
                    Some(object) if removes => object.get_mut(name).and_then(|next| next.as_object_mut()),
                    Some(object) => object.entry(name.clone()).or_insert_with(|| serde_json::json!({})).as_object_mut(),
                    None => None,
                };
            }
            let done = match removes {
                true => document.remove(&at),
                false => document.set(&at, &Node::read(&value.to_string()).unwrap()),
            };
            match object {
                Some(object) => {
                    match removes {
                        true => drop(object.remove(last)),
                        false => drop(object.insert(last.clone(), value)),
                    }
                    prop_assert!(done.is_ok());
                    let edited: serde_json::Value = serde_json::from_str(&document.text()).unwrap();
                    prop_assert_eq!(edited, naive);
                }
                None => prop_assert!(done.is_err() || removes && document.text() == text),
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}|[\\[\\]{}:,\"\\\\ u0-9ae.-]{0,40}") {
            if let Ok(document) = Document::read(&text) {
                prop_assert_eq!(document.text(), text);
            }
        }
    }
}
