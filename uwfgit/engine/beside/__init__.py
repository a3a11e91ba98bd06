"""An agent's session outside of the record: asked, or opened by a person."""
