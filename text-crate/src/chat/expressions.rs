//! Expressions of a template.

use super::arguments::Arguments;
use super::budget::{Broken, Level, Outcome};
use super::interpreter::{get_attribute, get_item, Interpreter};
use super::value::{Entries, Key, Text, Value};
use super::{filters, functions, methods, ops, predicates, sequences};
use minijinja::machinery::ast::{self, BinOpKind, CallArg, CompareOpKind, Expr, UnaryOpKind};
use std::cmp::Ordering;

fn constant(value: &minijinja::Value) -> Outcome<Value> {
    use minijinja::value::ValueKind;
    Ok(match value.kind() {
        ValueKind::None => Value::None,
        ValueKind::Bool => Value::Bool(value.is_true()),
        ValueKind::String => Value::str(value.as_str().unwrap_or_default()),
        ValueKind::Number if value.is_integer() => Value::Int(
            i128::try_from(value.clone())
                .map_err(|_| Broken::new("a whole number is too large"))?,
        ),
        ValueKind::Number => Value::Float(f64::try_from(value.clone()).unwrap_or(f64::NAN)),
        _ => return Err(Broken::new("an unknown kind of constant")),
    })
}

fn compare(op: CompareOpKind, left: &Value, right: &Value) -> Outcome<bool> {
    let ordered = |wanted: &[Ordering]| {
        let order = ops::order(left, right)?;
        Ok(order.is_some_and(|order| wanted.contains(&order)))
    };
    match op {
        CompareOpKind::Eq => Ok(left.equals(right)),
        CompareOpKind::Ne => Ok(!left.equals(right)),
        CompareOpKind::Lt => ordered(&[Ordering::Less]),
        CompareOpKind::Lte => ordered(&[Ordering::Less, Ordering::Equal]),
        CompareOpKind::Gt => ordered(&[Ordering::Greater]),
        CompareOpKind::Gte => ordered(&[Ordering::Greater, Ordering::Equal]),
        CompareOpKind::In => ops::contains(right, left),
        CompareOpKind::NotIn => ops::contains(right, left).map(|inside| !inside),
    }
}

fn binary(op: BinOpKind, left: &Value, right: &Value) -> Outcome<Value> {
    let truth = |op| compare(op, left, right).map(Value::Bool);
    match op {
        BinOpKind::Eq => truth(CompareOpKind::Eq),
        BinOpKind::Ne => truth(CompareOpKind::Ne),
        BinOpKind::Lt => truth(CompareOpKind::Lt),
        BinOpKind::Lte => truth(CompareOpKind::Lte),
        BinOpKind::Gt => truth(CompareOpKind::Gt),
        BinOpKind::Gte => truth(CompareOpKind::Gte),
        BinOpKind::In => truth(CompareOpKind::In),
        BinOpKind::Add => ops::add(left, right),
        BinOpKind::Sub => ops::sub(left, right),
        BinOpKind::Mul => ops::mul(left, right),
        BinOpKind::Div => ops::div(left, right),
        BinOpKind::FloorDiv => ops::floor_div(left, right),
        BinOpKind::Rem => ops::rem(left, right),
        BinOpKind::Pow => ops::pow(left, right),
        BinOpKind::Concat => ops::concat(left, right),
        BinOpKind::ScAnd | BinOpKind::ScOr => Ok(right.clone()),
    }
}

impl<'t> Interpreter<'t> {
    pub fn eval(&mut self, expression: &'t Expr<'t>) -> Outcome<Value> {
        let _level = Level::enter()?;
        match expression {
            Expr::Var(node) => Ok(self.lookup(node.id)),
            Expr::Const(node) => constant(&node.value),
            Expr::GetAttr(_) | Expr::GetItem(_) | Expr::Slice(_) | Expr::Call(_)
                if self.starts_with_minus(expression) =>
            {
                let value = self.eval_postfix(expression)?;
                ops::neg(&value)
            }
            Expr::GetAttr(_) | Expr::GetItem(_) | Expr::Slice(_) | Expr::Call(_) => {
                self.eval_postfix(expression)
            }
            Expr::BinOp(node) => self.eval_binary(node),
            Expr::UnaryOp(node) => {
                let value = self.eval(&node.expr)?;
                match node.op {
                    UnaryOpKind::Not => Ok(Value::Bool(!value.is_true())),
                    UnaryOpKind::Neg => ops::neg(&value),
                }
            }
            Expr::IfExpr(node) => self.eval_if(node),
            Expr::Filter(node) => {
                let value = match &node.expr {
                    Some(inner) => self.eval(inner)?,
                    None => Value::undefined("a filter has no value"),
                };
                let arguments = self.arguments(&node.args)?;
                self.apply_filter(node.name, &value, &arguments)
            }
            Expr::Test(node) => {
                let value = self.eval(&node.expr)?;
                let others = self.arguments(&node.args)?.positional;
                predicates::holds(node.name, &value, &others).map(Value::Bool)
            }
            other => self.eval_compound(other),
        }
    }

    /// Whether `-` stands before this chain of `.a`, `[b]` and `(c)`. The parser binds it tighter than
    /// the chain, Jinja looser.
    fn starts_with_minus(&self, chain: &Expr<'t>) -> bool {
        let mut expression = chain;
        loop {
            let inner = match expression {
                Expr::GetAttr(node) => &node.expr,
                Expr::GetItem(node) => &node.expr,
                Expr::Slice(node) => &node.expr,
                Expr::Call(node) => &node.expr,
                _ => return false,
            };
            if let Expr::UnaryOp(node) = inner {
                let bare = node.span().start_offset == expression.span().start_offset;
                return bare && matches!(node.op, UnaryOpKind::Neg);
            }
            expression = inner;
        }
    }

    /// What a chain's next link is applied to.
    fn eval_link(&mut self, inner: &'t Expr<'t>, outer: &Expr<'t>) -> Outcome<Value> {
        let _level = Level::enter()?;
        match inner {
            Expr::UnaryOp(node)
                if matches!(node.op, UnaryOpKind::Neg)
                    && node.span().start_offset == outer.span().start_offset =>
            {
                self.eval(&node.expr)
            }
            Expr::GetAttr(_) | Expr::GetItem(_) | Expr::Slice(_) | Expr::Call(_) => {
                self.eval_postfix(inner)
            }
            _ => self.eval(inner),
        }
    }

    fn eval_postfix(&mut self, expression: &'t Expr<'t>) -> Outcome<Value> {
        match expression {
            Expr::GetAttr(node) => {
                let object = self.eval_link(&node.expr, expression)?;
                get_attribute(self, &object, node.name)
            }
            Expr::GetItem(node) => {
                let object = self.eval_link(&node.expr, expression)?;
                let index = self.eval(&node.subscript_expr)?;
                get_item(self, &object, &index)
            }
            Expr::Slice(node) => {
                let value = self.eval_link(&node.expr, expression)?;
                let mut bounds = [None, None, None];
                for (bound, part) in bounds.iter_mut().zip([&node.start, &node.stop, &node.step]) {
                    *bound = part.as_ref().map(|part| self.eval(part)).transpose()?;
                }
                ops::slice(&value, bounds)
            }
            Expr::Call(node) => {
                let callee = self.eval_link(&node.expr, expression)?;
                let arguments = self.arguments(&node.args)?;
                self.call(&callee, arguments)
            }
            _ => self.eval(expression),
        }
    }

    fn eval_if(&mut self, node: &'t ast::IfExpr<'t>) -> Outcome<Value> {
        if self.eval(&node.test_expr)?.is_true() {
            return self.eval(&node.true_expr);
        }
        match &node.false_expr {
            Some(otherwise) => self.eval(otherwise),
            None => Ok(Value::undefined(
                "the inline if-expression evaluated to false and no else section was defined.",
            )),
        }
    }

    fn eval_binary(&mut self, node: &'t ast::BinOp<'t>) -> Outcome<Value> {
        let left = self.eval(&node.left)?;
        match node.op {
            BinOpKind::ScAnd if !left.is_true() => Ok(left),
            BinOpKind::ScOr if left.is_true() => Ok(left),
            op => {
                let right = self.eval(&node.right)?;
                binary(op, &left, &right)
            }
        }
    }

    fn eval_compound(&mut self, expression: &'t Expr<'t>) -> Outcome<Value> {
        match expression {
            Expr::List(node) => {
                let items = node.items.iter().map(|item| self.eval(item));
                let items = items.collect::<Outcome<_>>()?;
                // The parser makes lists of tuples too.
                let first = self
                    .source
                    .as_bytes()
                    .get(node.span().start_offset as usize);
                match first {
                    Some(b'[') => Value::list(items),
                    _ => Value::tuple(items),
                }
            }
            Expr::Map(node) => {
                let mut entries = Entries::new();
                for (key, value) in node.keys.iter().zip(&node.values) {
                    let key = Key::new(&self.eval(key)?)?;
                    entries.insert(key, self.eval(value)?);
                }
                Value::dict(entries)
            }
            Expr::Compare(node) => {
                let mut left = self.eval(&node.expr)?;
                for step in &node.ops {
                    let right = self.eval(&step.expr)?;
                    if !compare(step.op, &left, &right)? {
                        return Ok(Value::Bool(false));
                    }
                    left = right;
                }
                Ok(Value::Bool(true))
            }
            _ => Err(Broken::new("an unknown kind of expression")),
        }
    }

    pub fn apply_filter(
        &mut self,
        name: &str,
        value: &Value,
        arguments: &Arguments,
    ) -> Outcome<Value> {
        if !filters::NAMES.contains(&name) {
            return Err(Broken::new(format!("No filter named '{name}'.")));
        }
        if sequences::NAMES.contains(&name) {
            return sequences::apply(self, name, value, arguments);
        }
        filters::apply(name, value, arguments)
    }

    /// The filters of `{% filter a|b %}` over `value`.
    pub fn filter_chain(&mut self, chain: &'t Expr<'t>, value: Value) -> Outcome<Value> {
        let Expr::Filter(node) = chain else {
            return Ok(value);
        };
        let value = match &node.expr {
            Some(inner) => self.filter_chain(inner, value)?,
            None => value,
        };
        let arguments = self.arguments(&node.args)?;
        self.apply_filter(node.name, &value, &arguments)
    }

    fn arguments(&mut self, parts: &'t [CallArg<'t>]) -> Outcome<Arguments> {
        let mut arguments = Arguments::default();
        for part in parts {
            match part {
                CallArg::Pos(value) => arguments.positional.push(self.eval(value)?),
                CallArg::Kwarg(name, value) => {
                    let value = self.eval(value)?;
                    arguments.named.insert(Key::Str(Text::new(*name)), value);
                }
                CallArg::PosSplat(values) => {
                    let values = self.eval(values)?;
                    arguments.positional.extend(ops::iterate(&values)?);
                }
                CallArg::KwargSplat(members) => match self.eval(members)? {
                    Value::Dict(dict) => {
                        let members = dict.iter().map(|(key, value)| (key.clone(), value.clone()));
                        arguments.named.extend(members);
                    }
                    _ => return Err(Broken::new("argument after ** must be a mapping")),
                },
            }
        }
        Ok(arguments)
    }

    /// A call block: `caller` is its body.
    pub fn call_block(&mut self, node: &'t ast::Call<'t>, caller: Value) -> Outcome<Value> {
        let callee = self.eval(&node.expr)?;
        let mut arguments = self.arguments(&node.args)?;
        arguments
            .named
            .insert(Key::Str(Text::new("caller")), caller);
        self.call(&callee, arguments)
    }

    fn call(&mut self, callee: &Value, arguments: Arguments) -> Outcome<Value> {
        match ops::defined(callee)? {
            Value::Macro(id) => self.call_macro(*id, arguments),
            Value::Function(name) => functions::call(self, name, &arguments),
            Value::Method(method) => match &method.0 {
                Value::Loop(id) => self.call_loop_method(*id, method.1, arguments.positional),
                object => methods::call(object, method.1, &arguments),
            },
            Value::Loop(id) => self.call_loop(*id, &arguments),
            other => Err(Broken::new(format!(
                "'{}' object is not callable",
                other.type_name()
            ))),
        }
    }

    /// `loop(children)` in a recursive loop.
    fn call_loop(&mut self, id: usize, arguments: &Arguments) -> Outcome<Value> {
        let [values] = arguments.bind("loop", [""])?;
        let values = values.ok_or_else(|| super::arguments::missing("loop", "iterable"))?;
        let state = self.loops.get(id).filter(|state| state.statement.recursive);
        let Some((statement, depth)) = state.map(|state| (state.statement, state.depth)) else {
            return Err(Broken::new(
                "The loop must have the 'recursive' marker to be called recursively.",
            ));
        };
        self.capture(|inner| inner.for_loop(statement, &values, depth + 1))
    }

    fn call_loop_method(&mut self, id: usize, name: &str, values: Vec<Value>) -> Outcome<Value> {
        let Some(state) = self.loops.get_mut(id) else {
            return Err(Broken::new("the loop has ended"));
        };
        if name == "cycle" {
            let at = state.index % values.len().max(1);
            let value = values.get(at).cloned();
            return value.ok_or_else(|| Broken::new("no items for cycling given"));
        }
        let same = state.changed.as_ref().is_some_and(|before| {
            before.len() == values.len() && before.iter().zip(&values).all(|(a, b)| a.equals(b))
        });
        state.changed = Some(values);
        Ok(Value::Bool(!same))
    }

    fn call_macro(&mut self, id: usize, arguments: Arguments) -> Outcome<Value> {
        let super::interpreter::Macro { declaration, frame } = self.macros[id];
        let Arguments {
            positional,
            mut named,
        } = arguments;
        let count = declaration.args.len();
        if positional.len() > count && !self.extra_arguments {
            return Err(Broken::new(format!(
                "macro '{}' takes not more than {count} argument(s)",
                declaration.name
            )));
        }
        let caller = named.shift_remove("caller");
        let extra = Value::tuple(positional.iter().skip(count).cloned().collect())?;
        self.scoped(frame, |inner| {
            let first_default = count - declaration.defaults.len();
            for (index, target) in declaration.args.iter().enumerate() {
                let Expr::Var(parameter) = target else {
                    continue;
                };
                let given = match positional.get(index) {
                    Some(value) => Some(value.clone()),
                    None => named.shift_remove(parameter.id),
                };
                let default = index
                    .checked_sub(first_default)
                    .map(|at| &declaration.defaults[at]);
                let value = match (given, default) {
                    (Some(value), _) => value,
                    (None, Some(default)) => inner.eval(default)?,
                    (None, None) => {
                        Value::undefined(format!("parameter '{}' was not provided", parameter.id))
                    }
                };
                inner.set(parameter.id, value);
            }
            if let (false, Some(name)) = (inner.extra_arguments, named.keys().next()) {
                return Err(Broken::new(format!(
                    "macro '{}' takes no keyword argument '{}'",
                    declaration.name,
                    super::python::to_str(&name.value())
                )));
            }
            if let Some(caller) = caller {
                inner.set("caller", caller);
            }
            inner.set("varargs", extra);
            inner.set("kwargs", Value::dict(named)?);
            inner.capture(|inner| inner.run(&declaration.body).map(drop))
        })
    }
}
