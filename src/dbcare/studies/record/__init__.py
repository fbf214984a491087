"""What happened in a study? Its events, the state that follows from them, and how both are written."""
