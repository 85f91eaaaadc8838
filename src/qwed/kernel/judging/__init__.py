"""What an action is and does, apart from who asks: the judgement, its judges, and what no judge may leave unread."""
