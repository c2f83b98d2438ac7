" Colours of the model language (.cf) of Setpoint.
if exists('b:current_syntax')
  finish
endif

syntax case match
syntax iskeyword @,48-57,_,-

syntax match cfmodelName '\<[a-z_][a-zA-Z0-9_-]*\>'
syntax match cfmodelCall '\<[a-z_][a-zA-Z0-9_-]*\ze\s*('
syntax match cfmodelNamespace '\<[a-z_][a-zA-Z0-9_-]*\ze\s*::'
syntax match cfmodelEntity '\<[A-Z][a-zA-Z0-9_-]*'

syntax keyword cfmodelConditional if elif else when
syntax keyword cfmodelRepeat for
syntax keyword cfmodelImport import as
syntax keyword cfmodelStructure entity typedef implementation implement index
syntax keyword cfmodelStatement end extends matching using parents
syntax keyword cfmodelWordOperator and or not in is defined
syntax keyword cfmodelType dict
syntax keyword cfmodelBoolean true false
syntax keyword cfmodelConstant null undef
syntax keyword cfmodelSelf self
" These are names, too: types only before another name.
syntax match cfmodelBuiltin '\<\%(string\|int\|float\|number\|bool\|list\)\>\ze\s*\%(\[\s*\]\)\=?\=\s\+[a-z_]'

syntax match cfmodelOperator '--\|->\|<-\|[!=<>]=\|+=\|\*\*\|[-+*/%=<>?]'
syntax match cfmodelNumber '-\=\d\+'
syntax match cfmodelFloat '-\=\d*\.\d\+'
syntax match cfmodelRegex '\<matching\s\+/\%([^/\\]\|\\.\)\+/' contains=cfmodelMatching
syntax match cfmodelMatching '\<matching\>' contained

syntax match cfmodelEscape '\\\%([\\''"abfnrtv]\|\o\{1,3}\|x\x\{2}\|u\x\{4}\|U\x\{8}\|N{[^}]*}\)' contained
syntax match cfmodelInterpolation '{{[^{}"]\+}}' contained
syntax match cfmodelField '{[^{}"'']*}' contained
syntax region cfmodelString start='"' skip='\\\\\|\\"' end='"' oneline contains=cfmodelEscape,cfmodelInterpolation
syntax region cfmodelString start='''' skip='\\\\\|\\''' end='''' oneline contains=cfmodelEscape,cfmodelInterpolation
syntax region cfmodelString start='\<f"' skip='\\\\\|\\"' end='"' oneline contains=cfmodelEscape,cfmodelField
syntax region cfmodelString start='\<f''' skip='\\\\\|\\''' end='''' oneline contains=cfmodelEscape,cfmodelField
syntax region cfmodelRaw start='\<r"' skip='\\\\\|\\"' end='"' oneline
syntax region cfmodelRaw start='\<r''' skip='\\\\\|\\''' end='''' oneline
syntax region cfmodelText start='"""' end='"""' contains=cfmodelEscape,cfmodelInterpolation,@Spell fold
syntax keyword cfmodelTodo TODO FIXME XXX contained
syntax match cfmodelComment '#.*$' contains=cfmodelTodo,@Spell
syntax sync minlines=200

highlight default link cfmodelConditional Conditional
highlight default link cfmodelRepeat Repeat
highlight default link cfmodelImport Include
highlight default link cfmodelStructure Structure
highlight default link cfmodelStatement Statement
highlight default link cfmodelMatching Statement
highlight default link cfmodelWordOperator Operator
highlight default link cfmodelType Type
highlight default link cfmodelBuiltin Type
highlight default link cfmodelEntity Type
highlight default link cfmodelBoolean Boolean
highlight default link cfmodelConstant Constant
highlight default link cfmodelSelf Special
highlight default link cfmodelNamespace Include
highlight default link cfmodelCall Function
highlight default link cfmodelOperator Operator
highlight default link cfmodelNumber Number
highlight default link cfmodelFloat Float
highlight default link cfmodelRegex String
highlight default link cfmodelString String
highlight default link cfmodelRaw String
highlight default link cfmodelText String
highlight default link cfmodelEscape SpecialChar
highlight default link cfmodelInterpolation Special
highlight default link cfmodelField Special
highlight default link cfmodelComment Comment
highlight default link cfmodelTodo Todo

let b:current_syntax = 'cfmodel'
